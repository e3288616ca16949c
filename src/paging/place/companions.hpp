// The runtime's threads that are no fault handlers (reclaim, housekeeper). While handlers make way
// (handler_placement.hpp) they run on other CPUs: woken on a handler's CPU, which looks free, they would be in the
// way of the program's thread.
//
// Thread-safe without a lock: a handler that makes way may stand still for long, and the watchdog must not wait for
// it.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <array>
#include <atomic>

#include "paging/place/attendance.hpp"

namespace hinterland {

class Companions {
 public:
  // The CPUs that the process may use. Before the others; by one thread.
  void allow(const cpu_set_t& cpus);
  // Whether the process may use more than one. What a companion itself may use does not tell: it may be kept off all
  // but one for now.
  bool several_cpus() const;
  // The calling thread is a companion from now on. Again and again is once.
  void join();
  // The handler makes way on `cpu`; -1: it does not.
  void keep_off(unsigned handler, int cpu);
  // In a forked child, where none of them exists.
  void after_fork_in_child();

 private:
  void apply();

  // relaxed: these threads exist as long as the process. Five, or, of which up to 16 reclaim (Hermit), 19.
  std::array<std::atomic<pid_t>, 20> threads_{};
  std::array<std::atomic<int>, Attendance::kHandlersMax> taken_ = {-1, -1, -1, -1};  // CPUs
  std::atomic<std::uint32_t> changes_{0};
  cpu_set_t allowed_{};
  std::atomic<bool> known_{false};  // release and acquire: allowed_ is there
};

}  // namespace hinterland
