// Loops that do nothing but page: a range through a smaller budget, in every way and with the work done in every
// place.
#pragma once

#include <vector>

#include "floor/figure.hpp"

namespace hinterland::bench {

std::vector<Measurement> paging_measurements();

}  // namespace hinterland::bench
