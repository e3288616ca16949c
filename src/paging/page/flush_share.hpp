// Whether pages that leave flush the program's CPUs one by one
// (docs/adr/0015-scattered-pages-leave-from-the-same-cpu.md).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace hinterland {

// How many flushes of the program's CPUs a page costs that leaves: one for many pages where they are unmapped in one
// call or lie side by side, one each where changed pages lie scattered. Relaxed: it only steers.
class FlushShare {
 public:
  void note(std::size_t flushes, std::size_t pages) {
    if (pages == 0 || fixed_.load(std::memory_order_relaxed)) return;
    int share = static_cast<int>(std::min(flushes, pages) * kWhole / pages);
    int known = share_.load(std::memory_order_relaxed);
    share_.store(known + (share - known) / 8, std::memory_order_relaxed);
  }
  // More than one for four pages.
  bool high() const { return share_.load(std::memory_order_relaxed) > kWhole / 4; }
  void stay_low() { fixed_.store(true, std::memory_order_relaxed); }

  // Who faults or hints has taken pages itself, on the CPU that used them.
  void note_taken_where_used() { taken_where_used_.fetch_add(1, std::memory_order_relaxed); }
  // Scattered pages, which such threads have gone on to take since this was last asked: nobody else need do it, from
  // another CPU. `seen`: the asker's, for the next time.
  bool left_to_users(std::uint32_t* seen) const {
    std::uint32_t before = std::exchange(*seen, taken_where_used_.load(std::memory_order_relaxed));
    return *seen != before && high();
  }

 private:
  static constexpr int kWhole = 1024;
  std::atomic<int> share_{0};
  std::atomic<std::uint32_t> taken_where_used_{0};
  std::atomic<bool> fixed_{false};
};

}  // namespace hinterland
