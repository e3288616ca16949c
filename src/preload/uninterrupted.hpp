// Signals held back while the runtime does something for the program that must come to its end: a handler may leave
// by siglongjmp, with our locks taken and the thread still marked as inside, or make the same call and wait for
// itself.
#pragma once

#include <signal.h>
#include <sys/syscall.h>

#include <cstdint>

#include "base/inside.hpp"
#include "paging/bus_signal.hpp"
#include "paging/far_stack.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"

namespace hinterland {

// For the calling thread, from construction to destruction. Two system calls.
class SignalsBlocked {
 public:
  using Set = std::uint64_t;  // the kernel's
  static constexpr Set kAll = ~Set{0};
  // A fault of the program's own under our hands must meet its handler: blocked, it would end the process.
  static constexpr Set kFaults = Set{1} << (SIGSEGV - 1) | Set{1} << (SIGBUS - 1) | Set{1} << (SIGILL - 1) |
                                 Set{1} << (SIGFPE - 1) | Set{1} << (SIGTRAP - 1) | Set{1} << (SIGSYS - 1);
  static constexpr Set kAllButFaults = kAll & ~kFaults;

  // In signal mode SIGBUS is our own, and blocked it would end the process.
  static Set all() { return bus_signal::installed() ? kAll & ~(Set{1} << (SIGBUS - 1)) : kAll; }

  explicit SignalsBlocked(Set blocked) { change(SIG_BLOCK, &blocked, &before_); }
  ~SignalsBlocked() { change(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  static void change(int how, const Set* set, Set* before) {
    raw::call(SYS_rt_sigprocmask, how, reinterpret_cast<long>(set), reinterpret_cast<long>(before), sizeof(Set));
  }
  Set before_ = 0;
};

// InsideRuntime around what takes locks of this room.
class Uninterrupted {
 public:
  Uninterrupted() : blocked_(SignalsBlocked::kAllButFaults) {}

 private:
  SignalsBlocked blocked_;  // first in, last out
  InsideRuntime inside_;
};

// The same around calls of the pager, whose locks are the fault handler's, too, in calls that a program may make
// anywhere: mmap and its kin. `body` captures by value (far_stack.hpp).
template <typename Body>
auto uninterrupted(Body body) {
  Uninterrupted inside;
  return off_far_stack(pager(), body);
}

}  // namespace hinterland
