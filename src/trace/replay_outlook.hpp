// What a trace tells only in hindsight, and replay needs earlier: what becomes of a page after each of its faults.
//
// - Whether the program gives it back (or leaves it all zero) before it touches it again: its next fault finds it
//   untouched then. Such pages are mapped in runs, not fetched. When it did so is known of large blocks and of
//   mappings (given_back.hpp); of others it is taken to be soon after the fault.
// - How long it stayed, and how long it was gone until it was touched again. What touched it while it stayed, the
//   trace does not know; but a page that is touched so long after it left is taken to be touched so often before,
//   too. This matters where replay has evicted a page that stayed at recording: policies that go by arrival do not
//   keep with more room all that they keep with less.
// - When a page that stayed was touched by a scan: the scan's faults leave it out (scan_gaps.hpp). Where a scan
//   brings it back, too, nothing else is taken to have touched it meanwhile.
//
// Time is counted in faults of the trace. When pages left is found by replaying it as it was recorded.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/given_back.hpp"
#include "trace/replay_result.hpp"
#include "trace/trace_file.hpp"

namespace hinterland::trace {

class ReplayOutlook {
 public:
  // Of the first `faults_max` faults.
  explicit ReplayOutlook(const TraceFile& trace, std::uint64_t faults_max = UINT64_MAX);

  // Just before the fault of that number.
  struct Touch {
    std::uint64_t number, page;
  };
  const std::vector<Touch>& touches() const { return touches_; }

  // Before the fault of that number the program gave the page back, or got it again.
  struct Freed {
    std::uint64_t number, page;
    GivenBack::How how;
  };
  const std::vector<Freed>& freed() const { return freed_; }

  enum class Next : std::uint8_t {
    unknown,    // it does not fault again
    kept,       // its next fault finds its bytes
    forgotten,  // its next fault finds it untouched; nobody knows since when
    freed,      // the same, and freed() has it
  };
  struct Stay {
    Next next = Next::unknown;
    std::uint32_t left = 0;  // so many faults later it left; 0: not known
    std::uint32_t gone = 0;  // and came back so many after that
  };
  // Of the page of the n-th fault.
  Stay after(std::uint64_t number) const {
    return number < stays_.size() ? Stay{next_[number], stays_[number].left, stays_[number].gone} : Stay{};
  }

  // What was counted while the trace was replayed as it was recorded.
  const ReplayResult& recorded() const { return recorded_; }

 private:
  struct Times {
    std::uint32_t left, gone;
  };
  std::vector<Times> stays_;    // by fault
  std::vector<Next> next_;      // by fault
  std::vector<Touch> touches_;  // by number
  std::vector<Freed> freed_;    // by number
  ReplayResult recorded_;
};

}  // namespace hinterland::trace
