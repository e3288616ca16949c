// The fibers that wait for pages that their hints asked for, and for far objects.
//
// A worker keeps those whose waits it began. It looks after them whenever it picks the next fiber; a worker that has
// nothing to do looks after everybody's, so that one that computes for long holds up nobody (Eden 3.2 "fault
// stealing"). Where no worker has the time, the runtime gathers what a thread waits for in a fault; the fiber follows
// when a worker comes by.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "fiber/control.hpp"
#include "fiber/hinting.hpp"
#include "fiber/objects.hpp"

namespace hinterland::fiber {

class ParkedHints {
 public:
  void add(Fiber& fiber) {
    std::lock_guard lock(guard_);
    fibers_.push(fiber);
    if (fiber.leaving == Leaving::hints) pages_.fetch_add(1);
    count_.fetch_add(1);
  }
  std::uint32_t size() const { return count_.load(std::memory_order_relaxed); }
  std::uint32_t for_pages() const { return pages_.load(std::memory_order_relaxed); }

  // Calls ready(fiber) for those whose pages or objects are no longer on their way, among the `most` that wait
  // longest. Pages come in about the order in which they were asked for; who has to wait more goes to the end, so
  // that nobody hides those behind him. True when there were any.
  template <typename Ready>
  bool look(std::uint32_t most, Ready&& ready) {
    if (size() == 0 || !guard_.try_lock()) return false;
    bool any = false;
    for (std::uint32_t left = std::min(most, size()); left != 0; --left) {
      Fiber* fiber = fibers_.pop();
      if (is_on_its_way(*fiber)) {
        fibers_.push(*fiber);
        continue;
      }
      if (fiber->leaving == Leaving::hints) pages_.fetch_sub(1);
      count_.fetch_sub(1);
      ready(*fiber);
      any = true;
    }
    guard_.unlock();
    return any;
  }

 private:
  static bool is_on_its_way(const Fiber& fiber) {
    return fiber.leaving == Leaving::arrival ? object_is_on_its_way(fiber.awaited) : hint_is_on_its_way(fiber.hint);
  }
  hl::fibers::detail::spin_lock guard_;  // of the list
  FiberList fibers_;
  std::atomic<std::uint32_t> count_{0}, pages_{0};
};

}  // namespace hinterland::fiber
