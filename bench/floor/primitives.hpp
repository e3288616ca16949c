// What each primitive costs alone, without a fault pending.
#pragma once

#include <vector>

#include "floor/figure.hpp"

namespace hinterland::bench {

std::vector<Measurement> primitive_measurements();

}  // namespace hinterland::bench
