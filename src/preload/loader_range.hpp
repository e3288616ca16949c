// The dynamic loader's code. What it allocates (link maps, thread-local storage) stays local: the fault handler
// itself reaches thread-local variables and symbols through it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hinterland::loader_range {

extern std::uintptr_t g_base;
extern std::size_t g_bytes;

inline bool contains(const void* code) { return reinterpret_cast<std::uintptr_t>(code) - g_base < g_bytes; }
void find();

}  // namespace hinterland::loader_range
