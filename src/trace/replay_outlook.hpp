// What a trace tells only in hindsight: which pages the program gives back (or leaves all zero) before it touches
// them again, because their next fault finds them untouched. Replay needs it earlier than that: such pages are mapped
// in runs, not fetched.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trace/trace_file.hpp"

namespace hinterland::trace {

class ReplayOutlook {
 public:
  explicit ReplayOutlook(const TraceFile& trace) {
    trace.for_each_fault([this](const FaultRecord& fault) { note(fault); });
    last_.clear();
  }
  // Whether the page of the n-th fault is untouched at its next fault.
  bool is_forgotten_after(std::uint64_t number) const { return number < forgotten_.size() && forgotten_[number]; }

 private:
  void note(const FaultRecord& fault) {
    std::uint64_t number = forgotten_.size();
    forgotten_.push_back(false);
    if (fault.kind > FaultKind::refault) return;
    auto [last, fresh] = last_.try_emplace(fault.page, number);
    if (fresh) return;
    forgotten_[last->second] = fault.kind == FaultKind::first_touch;
    last->second = number;
  }

  std::vector<bool> forgotten_;                            // by fault
  std::unordered_map<std::uint64_t, std::uint64_t> last_;  // fault of each page; while being made
};

}  // namespace hinterland::trace
