#include "base/mutex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

namespace hinterland {

void futex_wait(std::atomic<std::uint32_t>* word, std::uint32_t expected, std::uint64_t timeout_ns,
                bool shared_between_processes) {
  int saved_errno = errno;
  timespec limit{static_cast<time_t>(timeout_ns / 1'000'000'000u), static_cast<long>(timeout_ns % 1'000'000'000u)};
  syscall(SYS_futex, word, shared_between_processes ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, expected,
          timeout_ns != 0 ? &limit : nullptr, nullptr, 0);
  errno = saved_errno;
}

void futex_wake(std::atomic<std::uint32_t>* word, int waiters, bool shared_between_processes) {
  int saved_errno = errno;
  syscall(SYS_futex, word, shared_between_processes ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, waiters, nullptr, nullptr, 0);
  errno = saved_errno;
}

void Mutex::lock_slow() {
  // A short spin: holders keep the lock for less than a microsecond, a sleep and wake-up costs tens of them.
  for (int spin = 0; spin < 100; ++spin) {
    if (try_lock()) return;
    __builtin_ia32_pause();
  }
  // acquire: pairs with the release in unlock()
  while (state_.exchange(kContended, std::memory_order_acquire) != kFree) futex_wait(&state_, kContended);
}

}  // namespace hinterland
