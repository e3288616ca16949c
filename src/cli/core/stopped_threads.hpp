// Stops the threads of a program under Hinterland, but not those of the runtime, which serve its faults.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstddef>
#include <vector>

#include "base/error.hpp"
#include "cli/core/process_memory.hpp"
#include "cli/core/segments.hpp"

namespace hinterland::cli {

struct ThreadState {
  pid_t id = 0;
  user_regs_struct registers{};
  std::vector<std::byte> floating_point;  // as NT_FPREGSET
  std::vector<std::byte> extended;        // as NT_X86_XSTATE
};

// Stopped by ptrace for as long as the object lives.
class StoppedThreads {
 public:
  // A thread inside the runtime is let out of it first: it may hold what serving faults needs. `dying` waits in its
  // signal handler for us, and is stopped wherever it is.
  static Result<StoppedThreads> stop(pid_t process, const RuntimeView& view, const ProcessMemory& memory,
                                     pid_t dying);
  StoppedThreads(StoppedThreads&& other) noexcept : stopped_(std::move(other.stopped_)) { other.stopped_.clear(); }
  ~StoppedThreads();

  // The runtime's threads too, once nothing has to be brought any longer.
  void stop_rest(pid_t process, const ProcessMemory& memory);

  // The main thread first. Registers are read now.
  std::vector<ThreadState> states() const;

 private:
  struct Stopped {
    pid_t thread;
    int signal;  // that was on its way to it when it stopped
  };
  StoppedThreads() = default;
  enum class When : std::uint8_t { outside_runtime, at_once };
  Result<bool> stop_new(pid_t process, const RuntimeView& view, const ProcessMemory& memory, pid_t dying, When when);
  std::vector<Stopped> stopped_;
};

}  // namespace hinterland::cli
