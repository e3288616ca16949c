// Waiting, as a fiber and as a thread; lists of those who wait.
#include "fiber/waiter.hpp"

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "fiber/scheduler.hpp"

namespace hl::fibers::detail {

waiter::waiter() : fiber(hinterland::fiber::current_fiber()) {}

bool waiter::wait(std::uint64_t until_ns) {
  if (fiber == nullptr) return thread_waits(until_ns);
  if (until_ns == hinterland::fiber::kNever) {
    hinterland::fiber::park();
  } else {
    auto& timers = fiber->scheduler->timers();
    timers.add(*this, until_ns);
    fiber->scheduler->new_deadline(until_ns);
    hinterland::fiber::park();
    timers.remove(*this);  // when it was woken before its time
  }
  return outcome_.load() != kTimedOut;
}

bool waiter::thread_waits(std::uint64_t until_ns) {
  for (;;) {
    std::uint32_t outcome = outcome_.load();
    if (outcome == kWoken || outcome == kTimedOut) return outcome == kWoken;
    std::uint64_t left = 0;  // without limit
    if (until_ns != hinterland::fiber::kNever && outcome == kWaiting) {
      std::uint64_t now = hinterland::now_ns();
      if (now >= until_ns) {
        claim_for_time();
        continue;
      }
      left = until_ns - now;
    }
    hinterland::futex_wait(&outcome_, outcome, left);
  }
}

void waiter::wake() {
  if (fiber != nullptr) {
    hinterland::fiber::unpark(*fiber);
    return;
  }
  outcome_.store(kWoken);  // the thread may go with this: what is woken below is then nobody, or looks again
  hinterland::futex_wake(&outcome_, 1);
}

void enlist(wait_list& list, waiter& who) {
  who.listed = true;
  who.next = nullptr;
  who.previous = list.last;
  (list.last != nullptr ? list.last->next : list.first) = &who;
  list.last = &who;
}

void strike(wait_list& list, waiter& who) {
  if (!who.listed) return;
  who.listed = false;
  (who.previous != nullptr ? who.previous->next : list.first) = who.next;
  (who.next != nullptr ? who.next->previous : list.last) = who.previous;
}

waiter* claim_first(wait_list& list) {
  while (list.first != nullptr) {
    waiter* first = list.first;
    strike(list, *first);
    if (first->claim()) return first;
  }
  return nullptr;
}

}  // namespace hl::fibers::detail
