#include "paging/program_threads.hpp"

#include <sched.h>

namespace hinterland {

void ProgramThreads::follow(std::uint32_t faulting_thread_id) {
  int target = follow_.on_fault(cpu_of(faulting_thread_id), sched_getcpu());
  if (target < 0) return;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<unsigned>(target), &cpus);
  sched_setaffinity(0, sizeof cpus, &cpus);  // refused (a cpuset): then we stay, and are only slower
}

}  // namespace hinterland
