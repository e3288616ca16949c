#include "advice/budget_plan.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/units.hpp"

namespace hinterland::trace {
namespace {

constexpr int kDoublingsMax = 16;
constexpr double kExact = 0.03;          // of the answer: the model is not better than that
constexpr double kMuchWaiting = 0.5;     // of the traced run
constexpr double kLittleWaiting = 0.05;  // of what there is with the least memory

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
                const std::map<std::uint32_t, ReplayHint>& hints, double native_s)
      : trace_(trace), sites_(sites), costs_(costs), settings_(settings), hints_(hints) {
    Waiting waiting = waiting_of(trace, sites);
    plan_.waiting_threads = waiting.threads;
    plan_.native_s = native_s > 0 ? native_s : of_the_trace_s(waiting);
    // Of a long trace the first faults alone are looked at: what they took is held against their share of the time.
    if (native_s > 0) looked_at_ = share_looked_at();
  }

  BudgetPlan run(double tolerated) {
    std::uint64_t low = trace_.process.local_bytes, high = low;
    for (int i = 0; i < kDoublingsMax; ++i, high *= 2) {
      if (is_enough(high, tolerated)) break;
      low = high;
    }
    if (!is_known() || !is_enough(high, tolerated)) return finish(0);
    plan_.less_may_do = high == trace_.process.local_bytes;
    while (static_cast<double>(high - low) > kExact * static_cast<double>(high)) {
      std::uint64_t middle = page_floor((low + high) / 2);
      (is_enough(middle, tolerated) ? high : low) = middle;
    }
    return finish(high);
  }

 private:
  bool is_known() const { return plan_.native_s > 0; }
  double share_looked_at() const {
    const auto all = static_cast<double>(std::max<std::uint64_t>(trace_.summary.faults, 1));
    return std::min(static_cast<double>(sites_.of_fault.size()) / all, 1.0);
  }
  // What the traced run took besides waiting, as it was recorded: without the hints, which the program did not have.
  double of_the_trace_s(const Waiting& waiting) const {
    ReplayOptions recorded = settings_;
    recorded.local_bytes = trace_.process.local_bytes;
    recorded.read_ahead_pages = static_cast<std::uint32_t>(trace_.process.read_ahead_pages);
    Prediction as_recorded = Predictor(trace_, sites_, costs_, recorded).with({});
    double waited_ns =
        (as_recorded.waiting_ns + waiting_for_first_touches(as_recorded.result, costs_, 0)) / plan_.waiting_threads;
    double all_ns = static_cast<double>(waiting.last_ns);
    double looked_at = static_cast<double>(waiting.last_ns) /
                       static_cast<double>(std::max<std::uint64_t>(trace_.summary.ended_ns, 1));
    double tracing_ns = looked_at * static_cast<double>(trace_.summary.sample_cost_ns *
                                                        (trace_.summary.samples + trace_.summary.samples_dropped));
    double besides_ns = all_ns - waited_ns - tracing_ns / plan_.waiting_threads;
    return besides_ns > all_ns * kMuchWaiting ? besides_ns / 1e9 : 0;
  }
  // Where the native time is not known: with more the program hardly waits less.
  bool is_enough(std::uint64_t local_bytes, double tolerated) {
    const BudgetPoint point = at(local_bytes);
    return is_known() ? 1 + point.waiting_share <= tolerated
                      : point.waiting_s <= plan_.points[0].waiting_s * kLittleWaiting;
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
    // By signal paging begins with the program, else when local memory is full.
    const std::uint64_t free_bytes = trace_.summary.faults_by_signal != 0 ? 0 : local_bytes;
    point.waiting_s =
        (prediction.waiting_ns + waiting_for_first_touches(prediction.result, costs_, free_bytes)) / 1e9;
    if (is_known()) point.waiting_share = point.waiting_s / plan_.waiting_threads / (plan_.native_s * looked_at_);
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
  double looked_at_ = 1;
  BudgetPlan plan_;
};

}  // namespace

BudgetPlan plan_budget(const TraceFile& trace, const FaultSites& sites, const Costs& costs,
                       const ReplayOptions& settings, const std::map<std::uint32_t, ReplayHint>& hints,
                       double tolerated, double native_s) {
  return BudgetPlanner(trace, sites, costs, settings, hints, native_s).run(tolerated);
}

}  // namespace hinterland::trace
