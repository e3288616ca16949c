#include "fiber/timers.hpp"

#include <mutex>

namespace hinterland::fiber {

void Timers::add(Waiter& waiter, std::uint64_t deadline_ns) {
  std::lock_guard lock(guard_);
  waiter.deadline_ns = deadline_ns;
  waiters_.insert(waiter);
  note_next();
}

void Timers::remove(Waiter& waiter) {
  std::lock_guard lock(guard_);
  if (!waiter.is_linked()) return;
  waiters_.erase(waiters_.iterator_to(waiter));
  note_next();
}

// A waiter stays until remove() has had the lock, so what is in the set is there.
bool Timers::expire(std::uint64_t now_ns) {
  if (next_ns() > now_ns) return false;
  bool any = false;
  std::lock_guard lock(guard_);
  while (!waiters_.empty() && waiters_.begin()->deadline_ns <= now_ns) {
    Waiter& due = *waiters_.begin();
    waiters_.erase(waiters_.begin());
    if (!due.claim_for_time()) continue;  // somebody wakes it just now
    due.wake();
    any = true;
  }
  note_next();
  return any;
}

}  // namespace hinterland::fiber
