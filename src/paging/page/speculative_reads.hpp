// Whether a page is asked for before there is room for it, by Hermit's rule as published (NSDI 2023, section 4.3, and
// hmt_enable_spec_io() of its source): until more than one in a hundred of 100 thousand found none; then not, until
// 10 million pages have been asked for.
#pragma once

#include <atomic>
#include <cstdint>

namespace hinterland {

// Any thread. Relaxed: it only steers.
class SpeculativeReads {
 public:
  static constexpr std::uint64_t kTrials = 100'000, kUntilNext = 10'000'000, kFailedOf = 100;

  // For the next page.
  bool next() {
    if (asked_.fetch_add(1, std::memory_order_relaxed) == kUntilNext) {
      failed_.store(0, std::memory_order_relaxed);
      trials_.store(0, std::memory_order_relaxed);
      asked_.store(0, std::memory_order_relaxed);
      on_.store(true, std::memory_order_relaxed);
      return true;
    }
    if (!on_.load(std::memory_order_relaxed)) return false;
    if (trials_.fetch_add(1, std::memory_order_relaxed) == kTrials) {
      std::uint64_t failed = failed_.exchange(0, std::memory_order_relaxed);
      trials_.store(0, std::memory_order_relaxed);
      if (failed * kFailedOf > kTrials) on_.store(false, std::memory_order_relaxed);
    }
    return on_.load(std::memory_order_relaxed);
  }
  // There was no room for the page that was asked for.
  void note_failed() { failed_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> asked_{0}, trials_{0}, failed_{0};
  std::atomic<bool> on_{true};
};

}  // namespace hinterland
