// The atomics on which a page's life turns: page words and frame states. In the product they are std::atomic. The
// tests that explore interleavings build this room a second time with HINTERLAND_STEPPED, and then every operation on
// one is a place where another mover may go on (testing/stepped_atomic.hpp).
#pragma once

#ifdef HINTERLAND_STEPPED
#include "paging/testing/stepped_atomic.hpp"
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
