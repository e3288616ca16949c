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
  double waiting_share = 0;  // of each thread that waits, against what the program computes
};

struct BudgetPlan {
  std::vector<BudgetPoint> points;  // by local memory; the least that is slow no more than tolerated is among them
  std::uint64_t least_bytes = 0;    // that one; 0 when even much memory is not enough
  bool less_may_do = false;         // it is what the trace was recorded with, which says nothing of less
  double local_s = 0;               // what the traced run computed; natively it may be less, and is not known
  double waiting_threads = 1;       // that share the waiting, on average
};

// `tolerated`: 1.1 where waiting may be a tenth of computing. `settings` but for their local memory.
BudgetPlan plan_budget(const TraceFile& trace, const FaultSites& sites, const Costs& costs,
                       const ReplayOptions& settings, const std::map<std::uint32_t, ReplayHint>& hints,
                       double tolerated);

}  // namespace hinterland::trace
