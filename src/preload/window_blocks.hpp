// Blocks of the object window (object/window.hpp), for malloc's interposers: anybody may free what a guarded program
// has allocated. A seam, for the room of objects is not in every library that interposes malloc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hinterland::window_blocks {

// Set once, before the first block; the window never ends. Zeros: there is none.
struct Calls {
  std::uintptr_t base = 0, size = 0;
  void (*release)(void* block) = nullptr;
  std::size_t (*size_of)(void* block) = nullptr;
  void* (*allocate)(std::size_t bytes, bool zeroed) = nullptr;  // nullptr: too large for the window
  void (*move)(void* to, const void* from, std::size_t bytes) = nullptr;
};
inline constinit Calls g_calls;

// An address that nobody but the window has is in it, so the calls were set before.
inline bool owns(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) - g_calls.base < g_calls.size;
}

}  // namespace hinterland::window_blocks
