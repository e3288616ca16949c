// What the calls that change mappings cost when several threads make them at once, each on memory of its own: Eden's
// figures 1 and 8 (a).
#pragma once

#include <vector>

#include "floor/figure.hpp"

namespace hinterland::bench {

// "scaling/CALL/PAGES/THREADS-threads": wall time over the pages of all threads, so that perfect scaling divides it.
std::vector<Measurement> scaling_measurements();

}  // namespace hinterland::bench
