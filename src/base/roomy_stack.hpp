// Whether the calling thread stands on a stack with room for the runtime's work: on its own one, and not near its
// end. Two loads and a comparison. Known where the preloaded library has seen the thread start
// (preload/stack_room.hpp); an alternate signal stack and a coroutine's are not roomy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hinterland::stack_room {

// The part of the calling thread's own stack that has room below it. Nothing: not known, as in threads that were made
// by clone(2).
struct Roomy {
  std::uintptr_t low = 0;
  std::size_t bytes = 0;
};
extern __attribute__((tls_model("initial-exec"))) thread_local Roomy t_roomy;

// Somebody notes it for each thread: where nothing is noted there is no room. Else nothing is known.
extern std::atomic<bool> g_noted;
// relaxed: changes once, while there is one thread
inline bool is_noted() { return g_noted.load(std::memory_order_relaxed); }

inline bool has_room() {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - t_roomy.low < t_roomy.bytes;
}

}  // namespace hinterland::stack_room
