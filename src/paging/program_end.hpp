// Whether the program is still there. A thread that ends by a system call of its own (SYS_exit as an instruction, or
// in strict seccomp) tells nobody, and the runtime's threads, on which no signal of the program's is taken, would
// keep the process for ever: it has to be looked at from outside.
#pragma once

namespace hinterland::program_end {

// Before the program runs, and in a forked child: opens what is looked at again and again.
void watch_this_process();

// Threads of the program that live: those of the process but the runtime's, and a first thread that ended already. -1
// where /proc does not tell. Async-signal-safe; allocates nothing.
int living_threads();

// The housekeeper's look: ends the process as its first thread ended, if no thread of the program is left.
void end_if_over();

// The calling thread will end without a word, and soon: so the looks are frequent from now on.
void expect();
bool is_expected();

}  // namespace hinterland::program_end
