// The local heap: the runtime's own allocations, the dynamic loader's, and everything before far memory is there.
// Never on far memory, never waits for it. Thread-safe, also while the process forks (heap_gate.hpp).
#pragma once

#include <cstddef>

#include "preload/local_range.hpp"

namespace hinterland::local_heap {

inline bool owns(const void* pointer) { return local_range::contains(pointer); }

// nullptr when there is no room; errno is not touched. Alignment: a power of two, or 0 for the usual 16 bytes.
void* allocate(std::size_t size, std::size_t alignment = 0, bool zero = false);
void* resize(void* pointer, std::size_t size);  // pointer stays valid on failure
void release(void* pointer);
std::size_t usable_size(const void* pointer);

}  // namespace hinterland::local_heap
