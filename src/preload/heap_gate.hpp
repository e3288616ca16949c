// Lets the runtime allocate while this process forks.
//
// jemalloc's locks are held from shortly before the fork until after it. The pager and its threads may allocate in
// that time, and would wait for the forking thread, which waits for them. So a fork first closes the gate and waits
// for local allocations under way; from then on the runtime's allocations come from a small emergency region, and its
// frees are put off, until the gate opens again.
//
// Order: enter() adds itself, then looks whether the gate is closed; close() closes, then looks who is inside. Both
// sequentially consistent, so at least one sees the other.
#pragma once

#include <cstddef>

namespace hinterland::heap_gate {

// True: the caller may use jemalloc, and must leave(). False: it must use the emergency region.
bool enter();
void leave();
// Whether this thread is between enter() and leave(), or frees what was put off.
bool passed_by_this_thread();

void close();
// When the emergency region is used up. Waits a moment for whoever closed the gate, and returns true: try again.
// False for that thread itself.
bool wait_for_others();
void open_in_parent();
void open_in_child();

void* emergency_allocate(std::size_t size, std::size_t alignment);  // zeroed; nullptr when the region is used up
void emergency_release();  // one block of it; with the last the whole region is free again
bool is_emergency(const void* pointer);
std::size_t emergency_size(const void* pointer);
// Frees a local block (16 bytes at least) once the gate is open again.
void free_later(void* pointer);

}  // namespace hinterland::heap_gate
