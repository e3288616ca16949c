// Pages that a thread went over without a fault: it faulted on page after page in order, left some out that were
// there, and went on behind them. They were touched then, though no fault says so.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>

namespace hinterland::trace {

class ScanGaps {
 public:
  static constexpr std::uint64_t kGapMax = 64;  // pages; as far as a read-ahead goes

  struct Gap {
    std::uint64_t first = 0, count = 0;  // pages
    bool in_scan = false;                // the fault goes on with a scan
  };
  // All faults of a trace, in order. The pages that the thread has left out just now, if any.
  Gap on_fault(std::uint64_t page, std::uint64_t thread_id);

 private:
  struct Scan {
    std::uint64_t thread_id = 0, last = 0;  // the page of its last fault
    std::int64_t direction = 1;
    std::uint64_t length = 0;  // faults so far; 0: the entry is free
    std::uint64_t used = 0;
  };
  static constexpr std::uint64_t kLengthLeast = 4;  // in order that many times: hardly by chance

  std::array<Scan, 64> scans_{};
  std::uint64_t clock_ = 0;
};

}  // namespace hinterland::trace
