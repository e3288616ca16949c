// Pages that the program locked into memory (mlock): they are not chosen to leave. One bit a page, set and cleared
// under the map lock, read by the evictors.
#pragma once

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>

#include "base/error.hpp"
#include "base/units.hpp"
#include "paging/page/reservation.hpp"

namespace hinterland {

class PinnedPages {
 public:
  Status create(std::uint64_t pages) {
    bytes_ = pages / 8 + sizeof(std::uint64_t);
    words_ = static_cast<std::atomic<std::uint64_t>*>(reserve_zeroed(bytes_));
    if (words_ == nullptr)
      return std::unexpected(Error::make(ENOMEM, "no address space for the marks of locked pages"));
    return {};
  }

  // relaxed throughout: a page that is being taken at this moment may still leave; the kernel brings it back
  bool contains(PageIndex page) const {
    return any() && (words_[page.value / 64].load(std::memory_order_relaxed) >> (page.value % 64) & 1) != 0;
  }
  bool any() const { return count_.load(std::memory_order_relaxed) != 0; }

  void set(PageIndex first, std::uint64_t pages, bool pinned) {
    if (!pinned && !any()) return;
    for (std::uint64_t at = first.value, end = first.value + pages; at < end;) {
      std::uint64_t bit = at % 64, length = end - at < 64 - bit ? end - at : 64 - bit;
      set_in_word(at / 64, (length == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << length) - 1) << bit, pinned);
      at += length;
    }
  }
  // In a forked child, which inherits no locks.
  void clear_all() {
    if (!any()) return;
    raw_madvise(words_, bytes_, MADV_DONTNEED);  // they read as zeros
    count_.store(0, std::memory_order_relaxed);
  }

 private:
  void set_in_word(std::uint64_t index, std::uint64_t mask, bool pinned) {
    std::uint64_t before = words_[index].load(std::memory_order_relaxed);
    std::uint64_t after = pinned ? before | mask : before & ~mask;
    if (before == after) return;
    words_[index].store(after, std::memory_order_relaxed);  // the map lock makes it the only writer
    count_.fetch_add(
        static_cast<std::uint64_t>(std::popcount(after)) - static_cast<std::uint64_t>(std::popcount(before)),
        std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t>* words_ = nullptr;
  std::size_t bytes_ = 0;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace hinterland
