// A program's thread that holds what others may wait for: no signal handler runs on it meanwhile, which could wait
// for the same or leave by siglongjmp, it is not cancelled, and its allocations are local.
//
// By a system call: libc's pthread_sigmask leaves out the signals that it keeps for itself. Faults of the program's
// own under our hands must meet their handlers. (preload/uninterrupted.hpp does the same for the interposers.)
#pragma once

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

#include "base/inside.hpp"

namespace hinterland {

class Undisturbed {
 public:
  Undisturbed() {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation_);
    std::uint64_t all = kAllButFaults;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &signals_, sizeof all);
    ++t_inside_runtime;
  }
  ~Undisturbed() {
    --t_inside_runtime;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &signals_, nullptr, sizeof signals_);
    pthread_setcancelstate(cancellation_, nullptr);
  }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

 private:
  static constexpr std::uint64_t kFirst = 1;
  static constexpr std::uint64_t kAllButFaults =
      ~(kFirst << (SIGSEGV - 1) | kFirst << (SIGBUS - 1) | kFirst << (SIGILL - 1) | kFirst << (SIGFPE - 1) |
        kFirst << (SIGTRAP - 1) | kFirst << (SIGSYS - 1));
  std::uint64_t signals_ = 0;
  int cancellation_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace hinterland
