// Marks a thread as being inside the runtime. While it is, every allocation it makes (ours or a library's) comes
// from local memory: invariant I6, nothing on the fault path allocates far memory. And it is not cancelled there:
// waiting for a page is no cancellation point to the program, and a thread that ended in it would take our locks
// along.
#pragma once

#include <pthread.h>

namespace hinterland {

// Nesting depth; malloc's interposer reads it. initial-exec: no call, no allocation to reach it.
extern __attribute__((tls_model("initial-exec"))) thread_local int t_inside_runtime;

// Whether the thread serves a fault of its own with all signals blocked, and is cancelled at once when it may be
// (PTHREAD_CANCEL_ASYNCHRONOUS). That is done by a signal, which waits; but libc's function that allows it again
// would do it itself, and unwind the runtime. So these two are not called then.
extern __attribute__((tls_model("initial-exec"))) thread_local bool t_cancellation_waits;

// Async-signal-safe.
class InsideRuntime {
 public:
  InsideRuntime() {
    if (t_inside_runtime++ == 0 && !t_cancellation_waits)
      pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
  }
  ~InsideRuntime() {
    if (--t_inside_runtime == 0 && cancel_state_ != kNone) pthread_setcancelstate(cancel_state_, nullptr);
  }
  InsideRuntime(const InsideRuntime&) = delete;
  InsideRuntime& operator=(const InsideRuntime&) = delete;

 private:
  static constexpr int kNone = -1;
  int cancel_state_ = kNone;  // the program's, of the outermost
};

}  // namespace hinterland
