// The atomics on which lives of pages and of far objects turn: page words, frame states, objects' headers. In the
// product they are std::atomic. The tests that explore interleavings build a room a second time with
// HINTERLAND_STEPPED, and then every operation on one is a place where another mover may go on
// (testing/stepped_atomic.hpp).
#pragma once

#ifdef HINTERLAND_STEPPED
#include "base/testing/stepped_atomic.hpp"
namespace hinterland {
template <typename T>
using Atomic = testing::SteppedAtomic<T>;
}  // namespace hinterland
#else
#include <atomic>
namespace hinterland {
template <typename T>
using Atomic = std::atomic<T>;
}  // namespace hinterland
#endif
