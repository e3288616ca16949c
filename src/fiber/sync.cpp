// Locks and the like, of fibers and threads.
#include <sched.h>

#include "fiber/scheduler.hpp"
#include "hinterland/fiber.hpp"

namespace hl::fibers {
namespace {

using detail::waiter;

std::uint64_t nanoseconds(clock::time_point when) {
  if (when == clock::time_point::max()) return hinterland::fiber::kNever;
  auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count();
  return since > 0 ? static_cast<std::uint64_t>(since) : 0;
}

}  // namespace

// Who holds it does so for some instructions, unless the kernel has taken its CPU away.
void detail::spin_lock::lock_slow() noexcept {
  for (unsigned tries = 1;; ++tries) {
    while (held_.load(std::memory_order_relaxed)) {
      if (tries++ % 128 == 0) sched_yield();
      __builtin_ia32_pause();
    }
    if (!held_.exchange(true, std::memory_order_acquire)) return;
  }
}

// Marked as waited for, by who holds the guard; then unlock() takes the guard, too.
void mutex::lock_slow() noexcept {
  waiter self;
  {
    std::lock_guard lock(guard_);
    if (state_.exchange(kWaitedFor, std::memory_order_acquire) == 0) return;  // ours, and unlock() looks once more
    enlist(waiters_, self);
  }
  self.wait();  // the mutex was handed over
}

void mutex::unlock_slow() noexcept {
  waiter* next = nullptr;
  {
    std::lock_guard lock(guard_);
    next = claim_first(waiters_);
    if (next == nullptr)
      state_.store(0, std::memory_order_release);
    else if (waiters_.first == nullptr)
      state_.store(kHeld, std::memory_order_release);
  }
  if (next != nullptr) next->wake();
}

bool condition_variable::wait_until_time(std::unique_lock<mutex>& lock, clock::time_point when) noexcept {
  waiter self;
  {
    std::lock_guard guard(guard_);
    enlist(waiters_, self);
  }
  lock.unlock();
  bool woken = self.wait(nanoseconds(when));
  if (!woken) {
    std::lock_guard guard(guard_);
    strike(waiters_, self);
  }
  lock.lock();
  return woken;
}

void condition_variable::notify_one() noexcept {
  waiter* next = nullptr;
  {
    std::lock_guard guard(guard_);
    next = claim_first(waiters_);
  }
  if (next != nullptr) next->wake();
}

// Those who wait now: who comes while they are woken waits for the next call.
void condition_variable::notify_all() noexcept {
  detail::wait_list now;
  {
    std::lock_guard guard(guard_);
    while (waiter* next = claim_first(waiters_)) enlist(now, *next);
  }
  while (now.first != nullptr) {
    waiter* next = now.first;
    strike(now, *next);
    next->wake();
  }
}

void semaphore::acquire() noexcept { acquire_before(clock::time_point::max()); }
bool semaphore::try_acquire_until(clock::time_point when) noexcept { return acquire_before(when); }

bool semaphore::try_acquire() noexcept {
  std::lock_guard lock(guard_);
  if (count_ <= 0) return false;
  --count_;
  return true;
}

bool semaphore::acquire_before(clock::time_point when) noexcept {
  waiter self;
  {
    std::lock_guard lock(guard_);
    if (count_ > 0) {
      --count_;
      return true;
    }
    enlist(waiters_, self);
  }
  if (self.wait(nanoseconds(when))) return true;  // what was released was handed over
  std::lock_guard lock(guard_);
  strike(waiters_, self);
  return false;
}

void semaphore::release(std::ptrdiff_t count) noexcept {
  for (; count > 0; --count) {
    waiter* next = nullptr;
    {
      std::lock_guard lock(guard_);
      next = claim_first(waiters_);
      if (next == nullptr) {
        count_ += count;
        return;
      }
    }
    next->wake();
  }
}

void this_fiber::sleep_until(clock::time_point when) noexcept {
  waiter self;
  self.wait(nanoseconds(when));
}

}  // namespace hl::fibers
