// A fiber that has used up its stack: said in words, instead of a crash in a place that has nothing to do with it.
#pragma once

#include <csignal>

#include "fiber/control.hpp"

namespace hinterland::fiber {

// Says which fiber it was and what to do, and ends the process by SIGSEGV. Async-signal-safe.
[[noreturn]] void report_overflow(const Fiber& fiber);

// While it lives, its thread handles faults on a stack of their own, where the guard of a fiber's stack can be told
// from other faults. A thread that has an alternate stack keeps it. Other faults go to the program's handler.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  void* memory_ = nullptr;
};

}  // namespace hinterland::fiber
