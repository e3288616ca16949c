// Tells the pager's own process from a copy that the kernel made behind the pager's back (a raw clone or fork).
//
// Such a copy has the parent's page words, its count of far pages and its fault descriptor: whatever it did with them
// it would do to its parent. The kernel itself clears the mark's page in every copy (MADV_WIPEONFORK, Linux 4.14).
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "base/error.hpp"
#include "base/units.hpp"
#include "paging/page/reservation.hpp"

namespace hinterland {

class CopyMark {
 public:
  // Once, when paging begins: before that a copy is as good as its parent.
  Status create() {
    void* memory = reserve_zeroed(kPageSize);
    if (memory == nullptr || raw_madvise(memory, kPageSize, MADV_WIPEONFORK) != 0)
      return std::unexpected(Error::make(errno, "cannot map a page that is cleared in copies of the process"));
    auto* word = static_cast<std::atomic<std::uint32_t>*>(memory);
    word->store(1, std::memory_order_relaxed);
    // release: other threads ask at any time, and must not see the page as the kernel gave it: that is a copy's.
    word_.store(word, std::memory_order_release);
    return {};
  }
  // This process is the pager's own: at first, and in the children of our own fork.
  void set() {
    if (auto* word = word_.load(std::memory_order_acquire); word != nullptr)
      word->store(1, std::memory_order_relaxed);  // relaxed: nothing is published by it
  }
  // There is no paging after all.
  void drop() { word_.store(nullptr, std::memory_order_relaxed); }  // relaxed: a copy is as good as its parent again
  // Callable anywhere.
  bool is_copy() const {
    const auto* word = word_.load(std::memory_order_acquire);  // pairs with create()
    return word != nullptr && word->load(std::memory_order_relaxed) == 0;
  }

 private:
  std::atomic<std::atomic<std::uint32_t>*> word_{nullptr};
};

}  // namespace hinterland
