// How many threads reclaim ahead of need, by Hermit's rule as published (Qiao et al., NSDI 2023, section 4.2, and
// hmt_get_sthd_cnt() and hmt_update_swap_ctrl() of the source that came with it). No clock, no thread: who knows what
// happened says so.
//
//   swap-in rate   the most pages that became local in a second, of all looks so far: it never falls
//   reclaim rate   pages a second that the first reclaim thread has freed since the start, while it worked
//   T              the integer quotient of both, at most as many threads as there may be
//   high mark      128 T free pages
//   low mark       16 high marks, or L where that is more; L is what the low mark was last
//   each look      mean refault distance not falling: L grows by 1/2000 of what is local; falling: L is 0
//   threads        none above the low mark, one above the high mark, below it one for each 128 pages that miss
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

namespace hinterland {

// Looks come one at a time; the rest from any thread. Relaxed: each value only steers.
class HermitSchedule {
 public:
  static constexpr unsigned kThreadsMax = 16;
  static constexpr std::uint64_t kLookNs = 1'000'000;

  // How many threads there are, from 1 to kThreadsMax. Before the first look.
  void set_threads(unsigned threads) { threads_max_ = threads; }

  bool wants_look(std::uint64_t now_ns) const {
    std::uint64_t last = last_look_ns_.load(std::memory_order_relaxed);
    return last == 0 || now_ns - last >= kLookNs;
  }
  // `now_ns`: more than 0. `charged`: pages that have become local since the start. `local`: those that are.
  // `mean_distance`: of the refaults since the last look; nothing where there were none.
  void look(std::uint64_t now_ns, std::uint64_t charged, std::uint64_t local,
            std::optional<std::uint64_t> mean_distance) {
    std::uint64_t last = last_look_ns_.exchange(now_ns, std::memory_order_relaxed);
    std::uint64_t before = std::exchange(charged_before_, charged);
    if (last == 0) return;
    std::uint64_t rate = rate_of(charged - before, now_ns - last);
    if (rate > swap_in_rate()) swap_in_rate_.store(rate, std::memory_order_relaxed);
    if (!mean_distance) return;
    bool falls = *mean_distance < std::exchange(distance_before_, *mean_distance);
    low_.store(falls ? 0 : low_.load(std::memory_order_relaxed) + static_cast<std::int64_t>(local / kUsageShare),
               std::memory_order_relaxed);
  }
  // The first thread: so many pages, in so much time.
  void note_reclaimed(std::uint64_t pages, std::uint64_t ns) {
    reclaimed_ += pages;
    reclaiming_ns_ += ns;
    reclaim_rate_.store(rate_of(reclaimed_, reclaiming_ns_), std::memory_order_relaxed);
  }

  // How many threads are to reclaim while so many pages are free; below zero: so much is the budget exceeded.
  unsigned threads(std::int64_t free) {
    std::uint64_t in = swap_in_rate(), out = reclaim_rate_.load(std::memory_order_relaxed);
    if (in == 0 || out == 0) return free < kFreeAtFirst ? 1 : 0;
    std::int64_t high = static_cast<std::int64_t>(std::min<std::uint64_t>(in / out, threads_max_)) * kPagesAThread;
    std::int64_t low = std::max(high * kLowOfHigh, low_.load(std::memory_order_relaxed));
    low_.store(low, std::memory_order_relaxed);
    if (free > low) return 0;
    if (free >= high) return 1;
    return static_cast<unsigned>(std::clamp<std::int64_t>((high - free) / kPagesAThread, 1, threads_max_));
  }

  std::uint64_t swap_in_rate() const { return swap_in_rate_.load(std::memory_order_relaxed); }
  // Free pages below which one thread reclaims.
  std::int64_t low_mark() const { return low_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::int64_t kPagesAThread = 128;  // alpha of the paper
  static constexpr std::int64_t kLowOfHigh = 16;      // beta of the source
  static constexpr std::uint64_t kUsageShare = 2000;  // gamma of the source
  static constexpr std::int64_t kFreeAtFirst = 2048;  // while a rate is not known: 8 MiB, Fastswap's rule

  // Pages a second.
  static std::uint64_t rate_of(std::uint64_t pages, std::uint64_t ns) {
    return ns == 0 ? 0 : pages * 1'000'000'000 / ns;
  }

  unsigned threads_max_ = kThreadsMax;
  std::atomic<std::uint64_t> last_look_ns_{0};
  std::uint64_t charged_before_ = 0, distance_before_ = 0;  // of who looks
  std::uint64_t reclaimed_ = 0, reclaiming_ns_ = 0;         // the first thread's
  std::atomic<std::uint64_t> swap_in_rate_{0}, reclaim_rate_{0};
  std::atomic<std::int64_t> low_{0};
};

}  // namespace hinterland
