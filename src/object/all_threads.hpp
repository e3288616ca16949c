// What a thread makes all others of the process do, wherever they are: membarrier(2).
#pragma once

namespace hinterland::object::all_threads {

// Once a process, before the call that they allow. 0, or the errno of a kernel or a filter that has none.
int allow_barriers();
int allow_restarts();

// When it returns, each has executed a full memory barrier since it was called. Some microseconds.
void pass_a_barrier();
// When it returns, each that was in a restartable sequence (rseq(2)) begins it anew. False: it was not allowed.
bool restart_sequences();

}  // namespace hinterland::object::all_threads
