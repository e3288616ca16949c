#include "trace/latencies.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hinterland::trace {
namespace {

constexpr std::size_t kQuickest = 32;
constexpr double kFetchedOtherNs = 3000;  // of devices that do more than copy
// What a fault takes more than a hint, at least: by message, and by signal.
constexpr double kByMessageLeastNs = 2200, kBySignalLeastNs = 1200;
constexpr double kWakeNs = 1000;

// What the fault takes by itself is its mean without the pages ahead, and not less than the quickest ones; what is
// left over then is what the pages took.
void without_ahead(const Latency& latency, double pages, double& alone_ns, double& page_ns) {
  alone_ns = std::max(latency.mean - pages * page_ns, std::min(latency.quick, latency.mean));
  if (pages > 0) page_ns = std::min(page_ns, (latency.mean - alone_ns) / pages);
}

}  // namespace

Latency latency_of(std::span<const StackSample> samples, std::initializer_list<FaultKind> kinds) {
  double sum = 0, weight = 0;
  std::vector<std::uint64_t> all;
  for (const StackSample& sample : samples) {
    if (sample.latency_ns == 0 || std::find(kinds.begin(), kinds.end(), sample.fault.kind) == kinds.end()) continue;
    sum += static_cast<double>(sample.weight) * static_cast<double>(sample.latency_ns);
    weight += static_cast<double>(sample.weight);
    all.push_back(sample.latency_ns);
  }
  if (all.empty()) return {};
  auto quick = all.begin() + static_cast<std::ptrdiff_t>(all.size() / kQuickest);
  std::nth_element(all.begin(), quick, all.end());
  return {sum / weight, static_cast<double>(*quick)};
}

ReadAheadCost read_ahead_cost(const TraceFile& trace, const ReplayOutlook* outlook) {
  const ReplayResult recorded = outlook != nullptr ? outlook->recorded() : ReplayResult{};
  auto a_fault = [](std::uint64_t pages, std::uint64_t faults) {
    return faults > 0 ? static_cast<double>(pages) / static_cast<double>(faults) : 0.0;
  };
  ReadAheadCost cost;
  cost.fetched = a_fault(recorded.ahead - recorded.zeros_ahead, recorded.fetches);
  cost.zeros = a_fault(recorded.zeros_ahead, recorded.first_touch);
  if (!trace.process.far_url.starts_with("mem:")) cost.fetched_ns = kFetchedOtherNs;
  return cost;
}

FaultWay fault_way(const Summary& summary) {
  const auto measured = static_cast<double>(summary.handler_cost_ns);
  if (summary.faults_by_signal != 0) return {std::max(measured, kBySignalLeastNs), 0};
  return {std::max(measured, kByMessageLeastNs), kWakeNs};
}

FaultCosts fault_costs(std::span<const StackSample> samples, const FaultWay& way, const ReadAheadCost& recorded) {
  Latency fetch = latency_of(samples, {FaultKind::read, FaultKind::write});
  FaultCosts found{.fetched_ahead = recorded.fetched_ns, .zeros_ahead = recorded.zeros_ns, .known = fetch.known()};
  if (!found.known) return found;
  without_ahead(fetch, recorded.fetched, found.fetch, found.fetched_ahead);
  auto set = [&](FaultKind kind, double& by_fault) {
    Latency own = latency_of(samples, {kind});
    by_fault = own.known() ? own.mean : found.fetch;
    return own;
  };
  set(FaultKind::refault, found.refault);
  set(FaultKind::write_protect, found.protection);
  if (Latency first = set(FaultKind::first_touch, found.first_touch); first.known())
    without_ahead(first, recorded.zeros, found.first_touch, found.zeros_ahead);
  for (double* cost : {&found.first_touch, &found.fetch, &found.refault, &found.protection})
    *cost += way.besides_latency();
  return found;
}

double waiting_ns(const ReplayResult& result, const FaultCosts& costs) {
  auto times = [](std::uint64_t count, double ns) { return static_cast<double>(count) * ns; };
  return times(result.first_touch, costs.first_touch) + times(result.fetches, costs.fetch) +
         times(result.refaults, costs.refault) + times(result.protection, costs.protection) +
         times(result.ahead - result.zeros_ahead, costs.fetched_ahead) + times(result.zeros_ahead, costs.zeros_ahead);
}

}  // namespace hinterland::trace
