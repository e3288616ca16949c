// Hints and faults of a trace in the order in which they came, counted by the line that hints.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "advice/fault_sites.hpp"
#include "advice/hint_review.hpp"

namespace hinterland::trace {

// A hint on missing pages, or a fault; what a replay goes through as well.
struct HintEventInOrder {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  FaultRecord fault;           // of a hint: its first page, read
  std::uint32_t hint = kNone;  // index into HintTally::records
  std::uint32_t site = kNone;  // of a fault: into FaultSites
};

struct HintTally {
  std::vector<ReviewedHint> hints;
  std::vector<std::uint32_t> hint_of_stack;  // by stack of the trace: into `hints`, or HintEventInOrder::kNone
  std::vector<HintRecord> records;
  std::vector<HintEventInOrder> events;                               // in order of time
  std::vector<std::map<std::uint32_t, std::uint64_t>> faults_behind;  // by hint: by fault site
  std::uint32_t hint_of(std::uint64_t stack) const {
    return stack < hint_of_stack.size() ? hint_of_stack[stack] : HintEventInOrder::kNone;
  }
};

HintTally tally_hints(const TraceFile& trace, Symbols& symbols, const FaultSites& sites);

}  // namespace hinterland::trace
