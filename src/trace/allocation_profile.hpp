// Faults by the place that allocated the memory they are on.
//
// Of large allocations all are known, so that a fault on one belongs to it. Of small ones a sample is known, and a
// page holds many: a fault on a page with a sampled one counts for the place of that one, with the share of the page
// that it has, as often as the sample says. Where pages of one kind fault as often as those of another, that is the
// share of each place without bias; it says nothing of a single object.
#pragma once

#include <vector>

#include "trace/profile.hpp"

namespace hinterland::trace {

struct AllocationProfile {
  // By line, most faults first; `samples`: recorded allocations; `via`: "mmap" and the library functions that were
  // called. The last one, "(not attributed)", has the rest: all sites together have all faults.
  std::vector<Site> sites;
  double exact = 0;      // faults on allocations that are known
  double estimated = 0;  // by those that are sampled
};

AllocationProfile make_allocation_profile(const TraceFile& trace, Symbols& symbols);

}  // namespace hinterland::trace
