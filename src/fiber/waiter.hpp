// Somebody who waits: a fiber, which parks, or an ordinary thread, which sleeps. Lies on the stack of who waits.
//
//     enlist it in a list, under the list's lock; unlock; wait()
//     who wakes: takes it out of the list, under the same lock; wake() when claim() says that it still waits
//
// With a time limit, waking and the time race for the claim; who waits takes itself out of the list when the time
// won.
#pragma once

#include <atomic>
#include <boost/intrusive/set_hook.hpp>
#include <cstdint>

#include "fiber/control.hpp"

namespace hinterland::fiber {

inline constexpr std::uint64_t kNever = ~std::uint64_t{0};  // ns of the steady clock

}  // namespace hinterland::fiber

struct hl::fibers::detail::waiter : boost::intrusive::set_base_hook<> {
  waiter();  // for the caller
  waiter(const waiter&) = delete;
  waiter& operator=(const waiter&) = delete;

  // True when it was woken, false when `deadline_ns` had come first.
  bool wait(std::uint64_t deadline_ns = hinterland::fiber::kNever);
  // Whoever gets true, and nobody else, calls wake(); until then the waiter stays.
  bool claim() { return decide(kClaimed); }
  bool claim_for_time() { return decide(kTimedOut); }
  void wake();

  waiter* next = nullptr;      // in the list
  waiter* previous = nullptr;  // in the list
  bool listed = false;         // guarded by the list's lock
  control* const fiber;        // nullptr: an ordinary thread

  std::uint64_t deadline_ns = hinterland::fiber::kNever;  // for the scheduler's timers

 private:
  static constexpr std::uint32_t kWaiting = 0, kClaimed = 1, kWoken = 2, kTimedOut = 3;
  bool decide(std::uint32_t outcome) {
    std::uint32_t waiting = kWaiting;
    return outcome_.compare_exchange_strong(waiting, outcome);
  }
  bool thread_waits(std::uint64_t deadline_ns);
  std::atomic<std::uint32_t> outcome_{kWaiting};
};

namespace hl::fibers::detail {

// Under the list's lock.
void enlist(wait_list& list, waiter& who);
void strike(wait_list& list, waiter& who);  // nothing when it is not in it
// The first that could be claimed; who failed to be is out of the list, too. nullptr when there is none.
waiter* claim_first(wait_list& list);

}  // namespace hl::fibers::detail

namespace hinterland::fiber {
using Waiter = hl::fibers::detail::waiter;
}  // namespace hinterland::fiber
