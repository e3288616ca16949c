// The program's threads: each tells the pager where it runs, and the process ends with the last of them although the
// runtime's own threads are still there.
#pragma once

namespace hinterland::threads {

// In the main thread, after Pager::start().
void start();
void after_fork_in_child();
// Whether the calling thread is the last of the program's.
bool is_last();

}  // namespace hinterland::threads
