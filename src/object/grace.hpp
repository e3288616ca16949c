// Scopes as the evacuators see them: the threads' slots, and waiting until every scope that was open has ended.
//
// As sleepable RCU does it (AIFM 5.3 has one counter; scopes that overlap for ever would then never be waited for to
// the end): each thread counts its open scopes under one of two parities. wait() makes new scopes count under the
// other parity, and waits until nobody is left under the first.
//
//     a thread that opens a scope                  wait(), called after words were marked
//     (1) active[parity] += 1                      (2) membarrier: all threads
//     (3) reads a word                             (4) reads active[] of all slots
//
// If (4) does not see (1), then (1) came after the barrier on that thread, so (3) sees the mark. The thread pays no
// barrier for that.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "hinterland/object_runtime.hpp"

namespace hinterland::object {

class Grace {
 public:
  using Slot = hl::far::detail::thread_slot;

  // Once a process, before the first wait(). Fails where the kernel has no membarrier(2), or a filter forbids it.
  Status begin();

  // For the calling thread, until leave() gives it to another. nullptr: no memory.
  Slot* enter();
  void leave(Slot* slot);

  // Every scope that was open when it was called has ended. False: `give_up` became true, or `limit_ns` has passed
  // (0: none). Not in a scope. One caller at a time gets through; others wait for it.
  bool wait(const std::atomic<bool>& give_up, std::uint64_t limit_ns = 0);

  // Threads that open their outermost scope call relieve() while this is set.
  void set_pressed(bool pressed);
  bool pressed() const { return pressed_.load(std::memory_order_relaxed); }

 private:
  bool drained(std::uint32_t parity);
  bool drain(std::uint32_t parity, const std::atomic<bool>& give_up, std::uint64_t end_ns);
  void show_phase_locked();

  Mutex waiting_;  // held by who waits
  Mutex mutex_;    // of what follows
  std::deque<Slot> slots_;
  std::vector<Slot*> unused_;
  std::uint32_t parity_ = 0;
  std::atomic<bool> pressed_{false};
};

}  // namespace hinterland::object
