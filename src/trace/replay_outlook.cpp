#include "trace/replay_outlook.hpp"

#include <algorithm>
#include <unordered_map>

#include "policy/policies.hpp"
#include "trace/replay.hpp"

namespace hinterland::trace {
namespace {

std::uint32_t in_32_bits(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, UINT32_MAX));
}

}  // namespace

ReplayOutlook::ReplayOutlook(const TraceFile& trace, std::uint64_t faults_max) {
  ReplayOptions recorded = recorded_settings(trace);
  const hl_policy_ops* policy = recorded.policy;
  if (policy == nullptr) recorded.policy = policies().front();
  recorded.follows = true;
  Replay replay(recorded);
  std::unordered_map<std::uint64_t, std::uint64_t> last;  // fault of each page
  trace.for_each_fault([&](const FaultRecord& fault) {
    std::uint64_t number = stays_.size();
    if (number >= faults_max) return;
    stays_.push_back({0, 0});
    forgotten_.push_back(false);
    if (fault.kind <= FaultKind::refault) {
      auto [before, fresh] = last.try_emplace(fault.page, number);
      if (!fresh) {
        forgotten_[before->second] = fault.kind == FaultKind::first_touch;
        std::uint64_t left = replay.left(fault.page);
        if (policy != nullptr && left > before->second)
          stays_[before->second] = {in_32_bits(left - before->second), in_32_bits(number - left)};
        before->second = number;
      }
    }
    replay.fault(fault);
  });
}

}  // namespace hinterland::trace
