// From how many bytes on a block of the heap is a large one: it begins on a page, grows by moving its pages, and is
// not cleared when malloc gives its memory again, which is new to the policy then (preload/far_heap.cpp). Traces have
// all of them.
#pragma once

#include <cstddef>

#include "base/units.hpp"

namespace hinterland {

inline constexpr std::size_t kLargeBlock = 256 * kKiB;

}  // namespace hinterland
