// What fetching pages over TCP on loopback costs with nothing but two sockets: the denominator of the `tcp:` device.
#pragma once

#include <vector>

#include "floor/figure.hpp"

namespace hinterland::bench {

std::vector<Measurement> loopback_measurements();

}  // namespace hinterland::bench
