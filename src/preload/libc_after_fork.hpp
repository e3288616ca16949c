// What glibc's own fork() puts right inside libc in the child, which ours must do because it calls _Fork(): locks
// that threads of the parent held.
#pragma once

namespace hinterland::libc_after_fork {

// At start: finds glibc's private data. What cannot be found is left alone.
void prepare();
// Right before the fork, and after it in the parent.
void lock_stdio();
void unlock_stdio();
// In the child, first of all: libc counts one thread.
void count_one_thread();
// In the child, when far memory works again (FILEs lie in it).
void repair_child();

}  // namespace hinterland::libc_after_fork
