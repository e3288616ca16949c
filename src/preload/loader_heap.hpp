// The loader's allocations in a program that defines malloc itself (tcmalloc, mimalloc, PartitionAlloc linked in).
//
// The loader takes malloc from the program, and pthread_create asks the loader for memory of the new thread. So a
// thread of the runtime would begin with a call of the program's malloc, which may hold a lock there that is waited
// for by who waits for the runtime: a thread of the program that maps memory under that lock; or nobody at all any
// more, in a forked child. And the memory could be far, which no fault handler may touch.
#pragma once

namespace hinterland::loader_heap {

// From now on the loader's allocations come from the local heap while the calling thread is inside the runtime; all
// others are the program's, as before. Nothing is done where the loader uses our malloc anyway, or keeps its
// functions where they are not found (a C library that is not glibc). In the constructor, before the first thread.
void take_for_runtime();

// Whether malloc, or one of its kin, is the program's own. After take_for_runtime().
bool program_has_malloc();

}  // namespace hinterland::loader_heap
