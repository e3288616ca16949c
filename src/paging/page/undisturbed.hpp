// A program's thread that holds what others may wait for: no signal handler runs on it meanwhile, which could wait
// for the same or leave by siglongjmp, it is not cancelled, and its allocations are local.
//
// Where the program has no handlers, signals need not be blocked: that is cheaper by two system calls, and for what
// is done often. Then whoever installs the first handler waits for all lanes of hints (signal_handlers.hpp), and so
// what is undisturbed must hold one of them, and ask again once it does: make_sure().
//
// Faults of the program's own under our hands must meet their handlers. (preload/uninterrupted.hpp does the same for
// the interposers.)
#pragma once

#include <pthread.h>

#include <csignal>
#include <cstdint>

#include "base/inside.hpp"
#include "base/signal_handlers.hpp"
#include "base/signal_mask.hpp"

namespace hinterland {

class Undisturbed {
 public:
  enum class Signals : std::uint8_t { blocked, blocked_where_handled };
  explicit Undisturbed(Signals signals = Signals::blocked) {
    if (!t_cancellation_waits) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation_);
    if (signals == Signals::blocked || signal_handlers::possible()) block();
    ++t_inside_runtime;
  }
  ~Undisturbed() {
    --t_inside_runtime;
    if (blocked_) signal_mask::set(signals_);
    if (cancellation_ != kNone) pthread_setcancelstate(cancellation_, nullptr);
  }
  // With the lane in hand.
  void make_sure() {
    if (!blocked_ && signal_handlers::possible()) block();
  }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

 private:
  void block() {
    signals_ = signal_mask::block(signal_handlers::kAllButFaults);
    blocked_ = true;
  }

  std::uint64_t signals_ = 0;
  bool blocked_ = false;
  static constexpr int kNone = -1;
  int cancellation_ = kNone;
};

}  // namespace hinterland
