// The program's pthread_atfork handlers. We keep them ourselves, because our fork must let the pager in between the
// system call and the first handler in the child, where glibc offers no place.
#pragma once

#include <cstddef>

namespace hinterland::atfork {

// `dso`: the object that registered, whose handlers go when it is unloaded. 0 or ENOMEM.
int add(void (*prepare)(), void (*parent)(), void (*child)(), const void* dso);
void remove_all_of(const void* dso);

// In order: prepare handlers last first; then the lock is held (so that the child finds the list whole) until
// run_parent() or run_child(), first one first. Handlers may register more: those do not run in this fork.
// Returns a mark for the later calls.
std::size_t run_prepare();
void lock();
void unlock();
void run_parent(std::size_t mark);
void run_child(std::size_t mark);

}  // namespace hinterland::atfork
