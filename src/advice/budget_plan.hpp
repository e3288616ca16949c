// The least local memory with which a traced program is slower than with all of its memory local by no more than is
// tolerated.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "advice/prediction.hpp"

namespace hinterland::trace {

struct BudgetPoint {
  std::uint64_t local_bytes = 0;
  std::uint64_t faults = 0;  // predicted, without first touches
  std::uint64_t hinted = 0;  // fetches by hints
  std::uint64_t pages_in = 0;
  double waiting_s = 0;      // of all threads together, first touches included
  double waiting_share = 0;  // of each thread that waits, against the native time; 0 where that is not known
};

struct BudgetPlan {
  std::vector<BudgetPoint> points;  // by local memory; the least that is slow no more than tolerated is among them
  std::uint64_t least_bytes = 0;    // that one; 0 when even much memory is not enough, or that is not known
  bool less_may_do = false;         // it is what the trace was recorded with, which says nothing of less
  double native_s = 0;              // as given, or of the traced run less its waiting; 0: not known
  double waiting_threads = 1;       // that share the waiting, on average
};

// `tolerated`: 1.1 where the program may wait for a tenth of its native time. `settings` but for their local memory.
// `native_s`: 0 where nobody has measured it. Then it is known only where the traced run waited for less than half of
// its time: else a small error of the waiting is a large one of the rest.
BudgetPlan plan_budget(const TraceFile& trace, const FaultSites& sites, const Costs& costs,
                       const ReplayOptions& settings, const std::map<std::uint32_t, ReplayHint>& hints,
                       double tolerated, double native_s);

}  // namespace hinterland::trace
