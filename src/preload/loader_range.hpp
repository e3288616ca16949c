// Code whose allocations are local. The dynamic loader: what it allocates (link maps, thread-local storage) stays
// local: the fault handler itself reaches thread-local variables and symbols through it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hinterland::loader_range {

extern std::uintptr_t g_base;
extern std::size_t g_bytes;
// The code of libc, in signal mode, else empty: libc hands buffers of its own to the kernel, which finds no far page
// there, and nobody can stand in between.
extern std::uintptr_t g_libc_base;
extern std::size_t g_libc_bytes;

inline bool contains(const void* code) {
  auto address = reinterpret_cast<std::uintptr_t>(code);
  return address - g_base < g_bytes || address - g_libc_base < g_libc_bytes;
}
void find();
void find_libc();

}  // namespace hinterland::loader_range
