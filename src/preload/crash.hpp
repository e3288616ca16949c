// A complete core file when a signal ends the program (`run --core`). The kernel's own holds no far pages, because it
// serves no faults while it dumps. So signals whose default is to dump core get a handler here that has a helper
// process write the file while our threads still serve faults, and then lets the signal end the program as it would
// have.
//
// The program does not see the handler: sigaction and its kin (interpose_signal.cpp) answer as if it were SIG_DFL.
#pragma once

#include <signal.h>

namespace hinterland::crash {

// Once, in the constructor. Does nothing without --core.
void start();

// Whether the signal may have our handler in the place of SIG_DFL.
bool watches(int number);
bool is_our_handler(void (*handler)(int));

// sigaction, with our handler in the place of SIG_DFL for the signals above. Async-signal-safe.
int change_action(int number, const struct sigaction* action, struct sigaction* old);

// Around a fork, which waits for the calls above that are under way: a child's would wait for a thread that it does
// not have. All signals are blocked.
void before_fork();
void after_fork();

}  // namespace hinterland::crash
