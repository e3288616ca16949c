// Who waits no longer than until some time. Any worker lets the time come for them.
#pragma once

#include <atomic>
#include <boost/intrusive/set.hpp>
#include <cstdint>

#include "fiber/waiter.hpp"

namespace hinterland::fiber {

class Timers {
 public:
  void add(Waiter& waiter, std::uint64_t deadline_ns);
  // Nothing when its time has come already.
  void remove(Waiter& waiter);
  // Wakes those whose time has come. True when there were any.
  bool expire(std::uint64_t now_ns);
  // Of the next that may have to be woken; kNever. Without the lock: it may be out of date for who does not add.
  std::uint64_t next_ns() const { return next_ns_.load(); }

 private:
  struct Sooner {
    bool operator()(const Waiter& left, const Waiter& right) const { return left.deadline_ns < right.deadline_ns; }
  };
  void note_next() { next_ns_.store(waiters_.empty() ? kNever : waiters_.begin()->deadline_ns); }

  hl::fibers::detail::spin_lock guard_;  // of the set and of whether a waiter is in it
  boost::intrusive::multiset<Waiter, boost::intrusive::compare<Sooner>, boost::intrusive::constant_time_size<false>>
      waiters_;
  std::atomic<std::uint64_t> next_ns_{kNever};
};

}  // namespace hinterland::fiber
