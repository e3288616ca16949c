// --catch: system calls that the program makes by instructions of its own go the way of syscall().
//
// The kernel sends SIGSYS for each that is not made from libc's code (syscall user dispatch,
// docs/adr/0043-catching-system-calls.md). The handler does what the call asks for, in the way that the table of
// system calls says. Each thread has to ask the kernel for it; a child begins without.
#pragma once

namespace hinterland::catching {

// Whether HINTERLAND_CATCH asks for it.
bool is_wanted();
// Before anything else of the runtime: where its own system calls are made from. False: libc's code is not as
// expected.
bool prepare();
// Once, when the pager is there; on the first thread. -errno.
int start();
bool is_on();

// The calling thread.
void begin_in_thread();
// Around what must not be interrupted by a signal, not even for a call of the loader's.
class Paused {
 public:
  Paused();
  ~Paused();  // in a forked child, too, which begins without
  Paused(const Paused&) = delete;
  Paused& operator=(const Paused&) = delete;
};

}  // namespace hinterland::catching
