// Marks a thread as being inside the runtime. While it is, every allocation it makes (ours or a library's) comes
// from local memory: invariant I6, nothing on the fault path allocates far memory. And it is not cancelled there:
// waiting for a page is no cancellation point to the program, and a thread that ended in it would take our locks
// along.
#pragma once

#include <pthread.h>

namespace hinterland {

// Nesting depth; malloc's interposer reads it. initial-exec: no call, no allocation to reach it.
extern __attribute__((tls_model("initial-exec"))) thread_local int t_inside_runtime;

// Async-signal-safe.
class InsideRuntime {
 public:
  InsideRuntime() {
    if (t_inside_runtime++ == 0) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
  }
  ~InsideRuntime() {
    if (--t_inside_runtime == 0) pthread_setcancelstate(cancel_state_, nullptr);
  }
  InsideRuntime(const InsideRuntime&) = delete;
  InsideRuntime& operator=(const InsideRuntime&) = delete;

 private:
  int cancel_state_ = PTHREAD_CANCEL_ENABLE;  // the program's, of the outermost
};

}  // namespace hinterland
