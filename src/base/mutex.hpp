// A futex mutex that neither allocates nor goes through libpthread, so that programs which interpose or
// instrument pthread_mutex_lock cannot reach into the fault path, and so that a forked child can reset it.
//
// Memory order: lock() acquires, unlock() releases, as std::mutex does.
#pragma once

#include <atomic>
#include <cstdint>

namespace hinterland {

// Sleeps while *word == expected; returns at a wake, a signal, or after timeout_ns (0: no limit).
void futex_wait(std::atomic<std::uint32_t>* word, std::uint32_t expected, std::uint64_t timeout_ns = 0,
                bool shared_between_processes = false);
void futex_wake(std::atomic<std::uint32_t>* word, int waiters, bool shared_between_processes = false);

class __attribute__((capability("mutex"))) Mutex {
 public:
  constexpr Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() __attribute__((acquire_capability())) {
    std::uint32_t free = kFree;
    // acquire: pairs with the release in unlock()
    if (!state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire, std::memory_order_relaxed))
      lock_slow();
  }
  bool try_lock() __attribute__((try_acquire_capability(true))) {
    std::uint32_t free = kFree;
    return state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unlock() __attribute__((release_capability())) {
    // release: pairs with the acquire in lock()
    if (state_.exchange(kFree, std::memory_order_release) == kContended) futex_wake(&state_, 1);
  }
  // In a forked child, where the holder does not exist: makes the mutex free again.
  void reset_after_fork() { state_.store(kFree, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kFree = 0, kHeld = 1, kContended = 2;
  void lock_slow();
  std::atomic<std::uint32_t> state_{kFree};
};

class __attribute__((scoped_lockable)) LockGuard {
 public:
  explicit LockGuard(Mutex& mutex) __attribute__((acquire_capability(mutex))) : mutex_(mutex) { mutex_.lock(); }
  ~LockGuard() __attribute__((release_capability())) { mutex_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace hinterland
