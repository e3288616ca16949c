// What programs see of the heap of far objects: struct runtime of hinterland/object_runtime.hpp, exported as
// hl_objects. One heap a process.
#pragma once

#include <string>

#include "base/error.hpp"
#include "object/heap.hpp"

namespace hinterland::object {

// Starts the process's heap over a device that is open. For tests, which then end it again: no object may be left.
Status begin_heap(const HeapOptions& options, std::unique_ptr<far::Device> device);
void end_heap();
Heap* current_heap();
Grace& process_grace();  // there before the heap, and after it
// As the environment says, unless it has begun. The error says why there is none.
Status begin_heap_as_told();
// Says which object is lost and raises SIGBUS (hl::far::detail::runtime::lost).
void object_is_lost(Word* word, int error);

// Around every fork, by the thread that forks, which holds no lock that a call of the runtime may wait for. Blocks
// for as long as calls under way do. Called by the preloaded library's own fork (preload/forking.cpp); elsewhere by
// the C library's, for which they are registered: before all handlers that use objects, so that theirs run while
// objects can be used.
void before_fork();
void after_fork_in_parent(bool forked);
void after_fork_in_child();
void register_fork_handlers();

}  // namespace hinterland::object
