// The reserved addresses of all local heap memory: jemalloc's metadata and arena 0. One range, so that "is it local"
// is a subtraction and a comparison. Reserved at first use, before any constructor may have run.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hinterland::local_range {

extern std::uintptr_t g_base;  // 0 until the first allocation
extern std::size_t g_bytes;

inline bool contains(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) - g_base < g_bytes; }

// Readable and writable zeroed memory, on a 2 MiB border when it is that large (jemalloc asks for that border and
// would map twice otherwise). Fails with -ENOMEM when a hint is given: jemalloc only wants the memory there then.
std::intptr_t map(const void* hint, std::size_t length);
int unmap(std::uintptr_t address, std::size_t length);

// Bytes handed out so far, most of which are in use: the runtime's, and with zmem: the far pages themselves.
std::size_t used_bytes();

// The start of the emergency region (heap_gate.hpp), kEmergencyBytes long, at the end of the range.
inline constexpr std::size_t kEmergencyBytes = std::size_t{16} << 20;
std::uintptr_t emergency_base();

}  // namespace hinterland::local_range
