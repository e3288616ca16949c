#include "advice/budget_plan.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/units.hpp"

namespace hinterland::trace {
namespace {

constexpr int kDoublingsMax = 16;
constexpr double kExact = 0.03;  // of the answer: the model is not better than that

// Threads wait side by side: of n that wait alike, the program waits an n-th of the sum.
struct Waiting {
  double threads = 1;
  std::uint64_t last_ns = 0;  // of the faults that are looked at
};
Waiting waiting_of(const TraceFile& trace, const FaultSites& sites) {
  std::unordered_map<std::uint64_t, double> faults;
  Waiting waiting;
  std::uint64_t number = 0;
  trace.for_each_fault([&](const FaultRecord& fault) {
    if (number++ >= sites.of_fault.size()) return;
    waiting.last_ns = fault.time_ns;
    if (fault.kind != FaultKind::first_touch) ++faults[fault.thread_id];
  });
  double sum = 0, squares = 0;
  for (const auto& [thread, count] : faults) {
    sum += count;
    squares += count * count;
  }
  if (squares > 0) waiting.threads = sum * sum / squares;
  return waiting;
}

class BudgetPlanner {
 public:
  BudgetPlanner(const TraceFile& trace, const FaultSites& sites, const Costs& costs, const ReplayOptions& settings,
                const std::map<std::uint32_t, ReplayHint>& hints)
      : trace_(trace), sites_(sites), costs_(costs), settings_(settings), hints_(hints) {
    Waiting waiting = waiting_of(trace, sites);
    plan_.waiting_threads = waiting.threads;
    // As it was recorded: without the hints, which the program did not have then.
    ReplayOptions recorded = settings;
    recorded.local_bytes = trace.process.local_bytes;
    recorded.read_ahead_pages = static_cast<std::uint32_t>(trace.process.read_ahead_pages);
    double waited_ns = Predictor(trace, sites, costs, recorded).with({}).waiting_ns / plan_.waiting_threads;
    double all_ns = static_cast<double>(waiting.last_ns);
    double looked_at = static_cast<double>(waiting.last_ns) /
                       static_cast<double>(std::max<std::uint64_t>(trace.summary.ended_ns, 1));
    double tracing_ns = looked_at * static_cast<double>(trace.summary.sample_cost_ns *
                                                        (trace.summary.samples + trace.summary.samples_dropped));
    // At least a tenth: what is left is computing, and latencies of a busy machine must not eat it all up.
    plan_.local_s = std::max(all_ns - waited_ns - tracing_ns / plan_.waiting_threads, all_ns / 10) / 1e9;
  }

  BudgetPlan run(double tolerated) {
    std::uint64_t low = trace_.process.local_bytes, high = low;
    for (int i = 0; i < kDoublingsMax; ++i, high *= 2) {
      if (is_enough(high, tolerated)) break;
      low = high;
    }
    if (!is_enough(high, tolerated)) return finish(0);
    plan_.less_may_do = high == trace_.process.local_bytes;
    while (static_cast<double>(high - low) > kExact * static_cast<double>(high)) {
      std::uint64_t middle = page_floor((low + high) / 2);
      (is_enough(middle, tolerated) ? high : low) = middle;
    }
    return finish(high);
  }

 private:
  bool is_enough(std::uint64_t local_bytes, double tolerated) {
    return 1 + at(local_bytes).waiting_share <= tolerated;
  }
  BudgetPoint at(std::uint64_t local_bytes) {
    for (const BudgetPoint& point : plan_.points)
      if (point.local_bytes == local_bytes) return point;
    ReplayOptions settings = settings_;
    settings.local_bytes = local_bytes;
    Prediction prediction = Predictor(trace_, sites_, costs_, settings).with(hints_);
    BudgetPoint point;
    point.local_bytes = local_bytes;
    point.faults = prediction.result.fetches + prediction.result.refaults + prediction.result.protection;
    point.hinted = prediction.result.hinted();
    point.pages_in = prediction.result.pages_in;
    point.waiting_s = prediction.waiting_ns / 1e9;
    point.waiting_share = point.waiting_s / plan_.waiting_threads / plan_.local_s;
    plan_.points.push_back(point);
    return point;
  }
  BudgetPlan finish(std::uint64_t least_bytes) {
    plan_.least_bytes = least_bytes;
    std::sort(plan_.points.begin(), plan_.points.end(),
              [](const BudgetPoint& a, const BudgetPoint& b) { return a.local_bytes < b.local_bytes; });
    return std::move(plan_);
  }

  const TraceFile& trace_;
  const FaultSites& sites_;
  Costs costs_;
  ReplayOptions settings_;
  const std::map<std::uint32_t, ReplayHint>& hints_;
  BudgetPlan plan_;
};

}  // namespace

BudgetPlan plan_budget(const TraceFile& trace, const FaultSites& sites, const Costs& costs,
                       const ReplayOptions& settings, const std::map<std::uint32_t, ReplayHint>& hints,
                       double tolerated) {
  return BudgetPlanner(trace, sites, costs, settings, hints).run(tolerated);
}

}  // namespace hinterland::trace
