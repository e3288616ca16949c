// Marks a thread as being inside the runtime. While it is, every allocation it makes (ours or a library's) comes
// from local memory: invariant I6, nothing on the fault path allocates far memory.
#pragma once

namespace hinterland {

// Nesting depth; malloc's interposer reads it. initial-exec: no call, no allocation to reach it.
extern __attribute__((tls_model("initial-exec"))) thread_local int t_inside_runtime;

class InsideRuntime {
 public:
  InsideRuntime() { ++t_inside_runtime; }
  ~InsideRuntime() { --t_inside_runtime; }
  InsideRuntime(const InsideRuntime&) = delete;
  InsideRuntime& operator=(const InsideRuntime&) = delete;
};

}  // namespace hinterland
