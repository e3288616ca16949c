#include "paging/place/companions.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/scheduling.hpp"

namespace hinterland {

void Companions::allow(const cpu_set_t& cpus) {
  if (known_.load(std::memory_order_acquire)) return;
  allowed_ = cpus;
  known_.store(true, std::memory_order_release);
}

// Before a handler has started none makes way, and nobody is kept off.
bool Companions::several_cpus() const {
  return known_.load(std::memory_order_acquire) ? CPU_COUNT(&allowed_) > 1 : several_cpus_allowed();
}

void Companions::join() {
  auto self = static_cast<pid_t>(syscall(SYS_gettid));
  for (std::atomic<pid_t>& thread : threads_) {
    pid_t none = 0;
    if (thread.load(std::memory_order_relaxed) == self) return;
    if (!thread.compare_exchange_strong(none, self, std::memory_order_relaxed)) continue;
    changes_.fetch_add(1);
    return apply();
  }
}

void Companions::keep_off(unsigned handler, int cpu) {
  if (taken_[handler].exchange(cpu) == cpu) return;
  changes_.fetch_add(1);
  apply();
}

void Companions::after_fork_in_child() {
  for (std::atomic<pid_t>& thread : threads_) thread.store(0, std::memory_order_relaxed);
  for (std::atomic<int>& taken : taken_) taken.store(-1, std::memory_order_relaxed);
  known_.store(false, std::memory_order_relaxed);
}

// Who comes last has seen all changes: whoever finds that there were more meanwhile goes round again.
void Companions::apply() {
  if (!known_.load(std::memory_order_acquire)) return;
  for (std::uint32_t seen = changes_.load(), before = ~seen; seen != before; seen = changes_.load()) {
    before = seen;
    cpu_set_t cpus = allowed_;
    for (const std::atomic<int>& taken : taken_)
      if (int cpu = taken.load(); cpu >= 0) CPU_CLR(static_cast<unsigned>(cpu), &cpus);
    if (CPU_COUNT(&cpus) == 0) cpus = allowed_;
    for (const std::atomic<pid_t>& thread : threads_)
      if (pid_t id = thread.load(std::memory_order_relaxed); id != 0) sched_setaffinity(id, sizeof cpus, &cpus);
  }
}

}  // namespace hinterland
