// The least local memory with which a traced program is hardly slower than with all of its memory local.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "advice/prediction.hpp"

namespace hinterland::trace {

struct BudgetPoint {
  std::uint64_t local_bytes = 0;
  std::uint64_t faults = 0;  // predicted; first touches are not among them
  std::uint64_t hinted = 0;  // fetches by hints
  std::uint64_t pages_in = 0;
  double waiting_s = 0;      // of all threads together
  double waiting_share = 0;  // of the time with all memory local, which is an estimate unless it was given
};

struct BudgetPlan {
  std::vector<BudgetPoint> points;  // by local memory; the least that is slow no more than tolerated is among them
  std::uint64_t least_bytes = 0;    // that one; 0 when even much memory is not enough
  bool less_may_do = false;         // it is what the trace was recorded with, which says nothing of less
  double local_s = 0;               // how long the program takes with all memory local; see is_measured
  bool is_measured = false;         // local_s was given; else what the trace says, often too much
  // Given a native time: how much longer the recorded run took because of far memory than the model says.
  double waiting_factor = 1;
  double waiting_threads = 1;  // that share the waiting, on average
};

// `tolerated`: 1.1 for a tenth slower. `settings` but for their local memory. `native_s`: measured, or 0: then the
// traced time is taken, less its waiting and what tracing took.
BudgetPlan plan_budget(const TraceFile& trace, const FaultSites& sites, const Costs& costs,
                       const ReplayOptions& settings, const std::map<std::uint32_t, ReplayHint>& hints,
                       double tolerated, double native_s = 0);

}  // namespace hinterland::trace
