#include "advice/prediction.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/units.hpp"

namespace hinterland::trace {
namespace {

constexpr double kLatencyUnknownNs = 10'000;
constexpr double kNativeTouchNs = 500;  // a fault of the kernel's own, and a page of zeros
// A hint over RAM, at least, whatever a busy machine made of the latencies.
constexpr double kHintLeastNs = 2000;

}  // namespace

Costs costs_of(std::span<const StackSample> samples, const FaultWay& way, const ReadAheadCost& recorded) {
  FaultCosts means = fault_costs(samples, way, recorded);
  Costs costs;
  costs.measured = means.known;
  costs.page_ahead = means.fetched_ahead;
  costs.first_touch = std::max((costs.measured ? means.first_touch : kLatencyUnknownNs) - kNativeTouchNs, 0.0);
  costs.zeros_ahead = std::max(means.zeros_ahead - kNativeTouchNs, 0.0);
  Latency fetch = latency_of(samples, {FaultKind::read, FaultKind::write});
  if (!costs.measured) means.fetch = fetch.quick = kLatencyUnknownNs;
  auto set = [&](FaultKind kind, double mean_ns, double& by_fault, double& by_hint) {
    Latency own = kind != FaultKind::read ? latency_of(samples, {kind}) : fetch;
    by_hint = std::max((own.known() ? own : fetch).quick - way.in_latency, kHintLeastNs);
    by_fault = std::max(own.known() ? mean_ns : means.fetch, by_hint + way.more_than_a_hint);
  };
  set(FaultKind::read, means.fetch, costs.fetch_fault, costs.fetch_hint);
  set(FaultKind::refault, means.refault, costs.refault_fault, costs.refault_hint);
  set(FaultKind::write_protect, means.protection, costs.protection_fault, costs.protection_hint);
  // They do less than a fetch does. Where few samples of a busy machine say otherwise, it is the machine's doing.
  costs.refault_fault = std::min(costs.refault_fault, costs.fetch_fault);
  costs.refault_hint = std::min(costs.refault_hint, costs.fetch_hint);
  costs.protection_fault = std::min(costs.protection_fault, costs.fetch_fault);
  costs.protection_hint = std::min(costs.protection_hint, costs.fetch_hint);
  return costs;
}

Costs Costs::when_idle() const {
  const double spared = fault_way({}).more_than_a_hint;
  Costs idle = *this;
  idle.fetch_fault = fetch_hint + spared;
  idle.refault_fault = refault_hint + spared;
  idle.protection_fault = protection_hint + spared;
  return idle;
}

double waiting_of(const ReplayResult& result, const Costs& costs) {
  auto times = [](std::uint64_t count, double ns) { return static_cast<double>(count) * ns; };
  return times(result.fetches, costs.fetch_fault) + times(result.refaults, costs.refault_fault) +
         times(result.protection, costs.protection_fault) + times(result.hinted_fetches, costs.fetch_hint) +
         times(result.hinted_refaults, costs.refault_hint) + times(result.hinted_protection, costs.protection_hint) +
         times(result.ahead - result.zeros_ahead, costs.page_ahead);
}

double written_for_nothing(const ReplayResult& for_writing, const ReplayResult& for_reading, const Costs& costs) {
  if (for_writing.pages_out <= for_reading.pages_out) return 0;
  return static_cast<double>(for_writing.pages_out - for_reading.pages_out) * costs.fetch_hint;
}

double waiting_for_first_touches(const ReplayResult& result, const Costs& costs, std::uint64_t free_bytes) {
  const double touched = static_cast<double>(result.first_touch + result.zeros_ahead);
  const double free = static_cast<double>(free_bytes >> kPageShift);
  if (touched <= free) return 0;
  const double all_ns = static_cast<double>(result.first_touch) * costs.first_touch +
                        static_cast<double>(result.zeros_ahead) * costs.zeros_ahead;
  return all_ns * (1 - free / touched);
}

Predictor::Predictor(const TraceFile& trace, const FaultSites& sites, const Costs& costs,
                     const ReplayOptions& settings)
    : trace_(trace), sites_(sites), costs_(costs), options_(settings) {
  options_.recorded_read_ahead_pages = static_cast<std::uint32_t>(trace.process.read_ahead_pages);
}

Prediction Predictor::with(const std::map<std::uint32_t, ReplayHint>& hints, const hl_policy_ops* policy) const {
  ReplayOptions options = options_;
  if (policy != nullptr) options.policy = policy;
  Replay replay(options);
  std::vector<const ReplayHint*> by_site(sites_.sites.size());
  for (const auto& [site, hint] : hints) by_site[site] = &hint;
  std::vector<std::unordered_map<std::uint64_t, std::uint64_t>> last_pages(by_site.size());  // by thread
  std::uint64_t number = 0;
  trace_.for_each_fault([&](const FaultRecord& fault) {
    if (number >= sites_.of_fault.size()) return;
    std::uint32_t site = sites_.of_fault[number++];
    const ReplayHint* hint = site != FaultSites::kNone ? by_site[site] : nullptr;
    replay.access(fault, hint, hint != nullptr && hint->sequential ? &last_pages[site][fault.thread_id] : nullptr);
  });
  Prediction prediction;
  prediction.result = replay.result();
  prediction.waiting_ns = waiting_of(prediction.result, costs_);
  return prediction;
}

}  // namespace hinterland::trace
