// How far apart a page's leaving and its return are, in pages that left between (Linux's refault distance,
// mm/workingset.c, which Hermit takes for the time that pages stay away; NSDI 2023, section 5).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/error.hpp"
#include "base/space_limit.hpp"
#include "base/units.hpp"
#include "paging/page/reservation.hpp"

namespace hinterland {

// Any thread; each page from one at a time. Relaxed: a mean that only steers.
class RefaultDistances {
 public:
  // Four bytes for each page of the window, of which only those of pages that left are touched. Kept for the life of
  // the process.
  Status create(std::uint64_t pages) {
    left_at_ = static_cast<std::atomic<std::uint32_t>*>(reserve_zeroed(std::size_t{pages} * sizeof *left_at_));
    if (left_at_ == nullptr)
      return std::unexpected(Error::make(ENOMEM, "no address space for refault distances")
                                 .remedy("use a smaller --window, or raise %s", limit_on_space()));
    return {};
  }

  void left(PageIndex page) {
    left_at_[page.value].store(clock_.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
  }
  // `local`: pages that are. One that comes back sooner than all of them would have left is active, and ages those
  // that are away by one, as in Linux.
  void came(PageIndex page, std::int64_t local) {
    // 0: it never left, or the clock went round; a mean can do without it.
    std::uint32_t left_at = left_at_[page.value].exchange(0, std::memory_order_relaxed);
    if (left_at == 0) return;
    std::uint32_t distance = clock_.load(std::memory_order_relaxed) - left_at;
    total_.fetch_add(distance, std::memory_order_relaxed);
    count_.fetch_add(1, std::memory_order_relaxed);
    if (distance <= local) clock_.fetch_add(1, std::memory_order_relaxed);
  }
  // Of those that came since the last call.
  std::optional<std::uint64_t> take_mean() {
    std::uint32_t count = count_.exchange(0, std::memory_order_relaxed);
    std::uint64_t total = total_.exchange(0, std::memory_order_relaxed);
    if (count == 0) return std::nullopt;
    return total / count;
  }

 private:
  std::atomic<std::uint32_t>* left_at_ = nullptr;
  std::atomic<std::uint32_t> clock_{1}, count_{0};
  std::atomic<std::uint64_t> total_{0};
};

}  // namespace hinterland
