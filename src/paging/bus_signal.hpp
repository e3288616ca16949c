// The SIGBUS handler of signal mode: faults in far memory end in Pager::serve_fault(), all others where they would
// have gone without us.
//
// The kernel knows only our handler. What the program asks for is kept here (change_action()), and its handler is
// called as the kernel would call it. Without the interposers of the signal library only the action counts that the
// program had when paging was set up.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"

namespace hinterland::bus_signal {

// Installs the handler; what was there is the program's. Once a process; forked children inherit it.
Status install();
bool installed();

// sigaction(2) for SIGBUS, as the program means it. 0. Async-signal-safe; neither pointer may be far.
int change_action(const struct sigaction* action, struct sigaction* old);

// Around a fork, which waits for whoever is reading or changing the action: a child's threads would wait for one that
// it does not have. All signals but faults are blocked.
void before_fork();
void after_fork();

// The calling thread's wish to block SIGBUS, which the kernel does not hear of: a fault would then end the process.
// Returns what it was. When it ends, a SIGBUS that was sent meanwhile is delivered.
bool block(bool blocked);
bool is_blocked();

// While the calling thread serves a fault of its own: the instruction that faulted. Else 0.
std::uintptr_t faulting_instruction();

// Faults of the calling thread are served on this stack from now on; (nullptr, 0): on the one that it is on, which
// must have 64 KiB to spare. It must be local, and outlive the thread's last touch of far memory.
void use_stack(void* base, std::size_t bytes);
// Whether the calling thread's type of cancellation is PTHREAD_CANCEL_ASYNCHRONOUS: then it is cancelled after a
// fault.
void cancel_at_once(bool at_once);

// Asked before a page is fetched from far away for a fault of the program's own: not 0 when the thread goes on
// without it, for which `context`, a ucontext_t, was changed (a fiber that parks: fiber/parking.hpp). It runs in the
// handler, on the stack that the kernel chose. nullptr: nobody is asked. Any thread.
using Parker = int (*)(std::uintptr_t address, int write, void* context);
void set_parker(Parker parker);

// Calls body(copy of the argument, of at most 64 bytes) on that stack, or, where there is none, on this one. For what
// moves pages outside of a fault: on a far stack it could take away the page that it stands on, and wait for itself
// (I6). The caller has blocked all signals but faults (Undisturbed), and the body touches nothing that is far: SIGBUS
// is blocked, too.
void on_local_stack(void (*body)(void*), void* argument, std::size_t bytes);

}  // namespace hinterland::bus_signal
