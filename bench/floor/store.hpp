// Where the pages of the loops come from: ordinary memory, filled once.
#pragma once

#include <cstddef>

#include "floor/calls.hpp"

namespace hinterland::bench {

// Memory of that size, the same at each call with the same size. The first word of each page is its index, so that no
// loop can go wrong unseen. Not thread-safe: the first call is made before threads are started.
Mapping& filled_store(std::size_t bytes);

}  // namespace hinterland::bench
