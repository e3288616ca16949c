// What the tests that explore interleavings replace in this room, which they compile with HINTERLAND_STEPPED
// (base/atomic.hpp): atomics, locks, and how often one looks before one waits. In the product: nothing.
#pragma once

#include "base/atomic.hpp"
#ifdef HINTERLAND_STEPPED
#include "base/testing/stepped_lock.hpp"
#endif

namespace hinterland::object {

#ifdef HINTERLAND_STEPPED
using LockGuard = hinterland::testing::SteppedLock;
inline constexpr bool kStepped = true;
#else
inline constexpr bool kStepped = false;
#endif

}  // namespace hinterland::object
