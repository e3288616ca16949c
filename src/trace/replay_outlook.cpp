#include "trace/replay_outlook.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/units.hpp"
#include "policy/policies.hpp"
#include "trace/given_back.hpp"
#include "trace/replay.hpp"
#include "trace/scan_gaps.hpp"

namespace hinterland::trace {
namespace {

std::uint32_t in_32_bits(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, UINT32_MAX));
}

}  // namespace

ReplayOutlook::ReplayOutlook(const TraceFile& trace, std::uint64_t faults_max) {
  ReplayOptions recorded = recorded_settings(trace);
  const hl_policy_ops* policy = recorded.policy;
  // The learner's victims hang on accesses that the trace has not. When pages left is told better by their order.
  if (policy == nullptr || policy == &kLearnerPolicy) recorded.policy = &kSecondChancePolicy;
  recorded.follows = true;
  Replay replay(recorded);
  // What leaves stays in a frame until about so many others have left.
  std::uint64_t gone_least = (recorded.local_bytes >> kPageShift) / 16;
  struct Known {
    std::uint64_t number;  // of its last fault
    bool touched = false;  // by a scan, since
    bool freed = false;    // since
  };
  std::unordered_map<std::uint64_t, Known> last;
  ScanGaps scans;
  std::vector<GivenBack> givens = given_back(trace);
  auto given = givens.begin();
  trace.for_each_fault([&](const FaultRecord& fault) {
    std::uint64_t number = stays_.size();
    if (number >= faults_max) return;
    stays_.push_back({0, 0});
    next_.push_back(Next::unknown);
    for (; given != givens.end() && given->time_ns <= fault.time_ns; ++given) {
      const bool again = given->how == GivenBack::How::taken_again;
      auto free = [&](std::uint64_t page, Known& known) {
        if (again && !known.freed) return;
        known.freed = true;
        freed_.push_back({number, page, given->how});
      };
      if (given->end - given->first > last.size()) {  // reserved, and hardly used
        for (auto& [page, known] : last)
          if (given->first <= page && page < given->end) free(page, known);
        continue;
      }
      for (std::uint64_t page = given->first; page < given->end; ++page)
        if (auto known = last.find(page); known != last.end()) free(page, known->second);
    }
    if (fault.kind <= FaultKind::refault) {
      ScanGaps::Gap gap = scans.on_fault(fault.page, fault.thread_id);
      for (std::uint64_t page = gap.first; page < gap.first + gap.count; ++page)
        if (auto left_out = last.find(page); left_out != last.end() && replay.is_there(page)) {
          left_out->second.touched = true;
          touches_.push_back({number, page});
        }
      auto [before, fresh] = last.try_emplace(fault.page, Known{number});
      if (!fresh) {
        Known& known = before->second;
        next_[known.number] = fault.kind != FaultKind::first_touch ? Next::kept
                              : known.freed                        ? Next::freed
                                                                   : Next::forgotten;
        // Where the model still has it, or has it in a frame, the page left earlier than the model thinks: it was
        // far.
        std::uint64_t left = replay.left(fault.page);
        if (fault.kind != FaultKind::refault) left = std::min(left, number - std::min(number, gone_least));
        if (policy != nullptr && left > known.number && !(known.touched && gap.in_scan))
          stays_[known.number] = {in_32_bits(left - known.number), in_32_bits(number - left)};
        known = {number};
      }
    }
    replay.fault(fault);
  });
  recorded_ = replay.result();
}

}  // namespace hinterland::trace
