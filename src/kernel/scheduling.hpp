// What we ask the scheduler about our own threads.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>

#include "kernel/proc_file.hpp"

namespace hinterland {

// Whether the calling thread may run on more than one CPU.
bool several_cpus_allowed();

// Whether a thread that gave up its priority (SCHED_IDLE) may take it back: needs CAP_SYS_NICE, or RLIMIT_NICE as
// high as the thread's nice value asks for.
bool may_leave_idle_policy();

// SCHED_IDLE on, or back to SCHED_OTHER. 0 is the calling thread. Returns 0 or -errno.
int set_idle_policy(pid_t thread_id, bool idle);

// Lets the calling thread go before others until take_usual_priority(), where that is permitted (CAP_SYS_NICE,
// RLIMIT_NICE); elsewhere nothing changes. Threads that it starts meanwhile go before others, too.
void go_before_others();
// Ends that: the nice value is again that of the process's first thread.
void take_usual_priority();

// "/proc/self/task/ID/stat", for is_runnable().
std::array<char, 48> path_of_thread_state(pid_t thread_id);
// True when the thread runs or waits for a CPU; false when it sleeps, or cannot be asked.
bool is_runnable(ProcFile& thread_state);

}  // namespace hinterland
