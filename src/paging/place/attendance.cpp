#include "paging/place/attendance.hpp"

#include "base/stats.hpp"

namespace hinterland {

void Attendance::call(std::uint32_t thread_id) {
  if (!calling_.try_lock()) return;  // somebody else does; the next fault is soon enough
  unsigned spares = spares_.load(std::memory_order_relaxed);
  for (unsigned handler = 1; handler <= spares && !by_another(thread_id, kHandlersMax); ++handler) {
    if (is_called(handler)) continue;
    called_.fetch_add(1, std::memory_order_relaxed);
    places_[handler].store(thread_id, std::memory_order_relaxed);
    futex_wake(&places_[handler], 1);
    wake_starter_();
    count(Counter::handlers_called);
    break;
  }
  calling_.unlock();
}

std::uint32_t Attendance::wait_for_call(unsigned handler) {
  for (;;) {
    if (std::uint32_t thread_id = places_[handler].load(std::memory_order_relaxed); thread_id != 0) return thread_id;
    futex_wait(&places_[handler], 0);
  }
}

void Attendance::leave(unsigned handler, std::uint64_t served) {
  std::uint32_t patience = patience_.load(std::memory_order_relaxed);
  if (served >= kWorthIt)
    patience = kPatienceMin;
  else if (patience < kPatienceMax)
    patience *= 4;
  patience_.store(patience, std::memory_order_relaxed);
  places_[handler].store(0, std::memory_order_relaxed);
  called_.fetch_sub(1, std::memory_order_relaxed);
}

void Attendance::after_fork_in_child() {
  for (std::atomic<std::uint32_t>& place : places_) place.store(0, std::memory_order_relaxed);
  called_.store(0, std::memory_order_relaxed);
  calling_.reset_after_fork();
}

}  // namespace hinterland
