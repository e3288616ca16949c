// Quicksort of a part of an array, as each thread of the parallel sort does it.
#pragma once

#include <cstdint>

namespace psort {

using Value = std::uint32_t;

void quicksort(Value* begin, Value* end);

}  // namespace psort
