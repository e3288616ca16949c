// Signals held back while the runtime does something for the program that must come to its end: a handler may leave
// by siglongjmp, with our locks taken and the thread still marked as inside, or make the same call and wait for
// itself.
#pragma once

#include <signal.h>

#include <cstdint>

#include "base/inside.hpp"
#include "base/own_stack.hpp"
#include "base/signal_mask.hpp"
#include "paging/bus_signal.hpp"
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

  static constexpr Set kAllButBus = kAll & ~(Set{1} << (SIGBUS - 1));

  // In signal mode SIGBUS is our own, and blocked it would end the process.
  static const Set& all() { return bus_signal::installed() ? kAllButBus : kAll; }

  explicit SignalsBlocked(const Set& stored) : before_(signal_mask::block(stored)) {}  // one of the above
  ~SignalsBlocked() { signal_mask::set(before_); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  Set before_;
};

// InsideRuntime around what takes locks of this room.
class Uninterrupted {
 public:
  Uninterrupted() : blocked_(SignalsBlocked::kAllButFaults) {}

 private:
  SignalsBlocked blocked_;  // first in, last out
  InsideRuntime inside_;
};

// The same around what a program may ask for anywhere, on whatever stack: mmap and its kin. `body` captures by value
// (own_stack.hpp). Who is on a stack of ours already came this way.
template <typename Body>
auto uninterrupted(const Body& body) {
  if (t_inside_runtime > 0 && own_stack::is_on()) return on_own_stack(body);
  Uninterrupted inside;
  return on_own_stack(body);
}

}  // namespace hinterland
