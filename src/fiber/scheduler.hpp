// Runs fibers on threads: a queue of ready fibers for each worker, work stealing, sleep when there is nothing to do.
//
// A worker takes from its own queue, from the common one, from other workers, and polls what fibers wait for:
// arrivals of hinted pages and of far objects (parked_hints.hpp), timers, sockets. Who finds nothing spins for a
// while, then sleeps: one of the sleepers in the poller, until the next timer, the others on a futex. Waking a worker
// is dear (a halted CPU, an interrupt), so that new work wakes one only when no other is already looking. Who is the
// last to look and finds something wakes the next before it runs that: somebody always looks or sleeps in the poller
// while there are workers that do not run fibers.
//
// Everything here lies in memory that is never far.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "fiber/control.hpp"
#include "fiber/parked_hints.hpp"
#include "fiber/poller.hpp"
#include "fiber/run_queue.hpp"
#include "fiber/timers.hpp"

namespace hinterland::fiber {

struct alignas(64) Worker {
  Context context;  // of its thread, while a fiber runs
  Scheduler* scheduler = nullptr;
  Fiber* current = nullptr;
  std::uint32_t index = 0;
  std::uint32_t tick = 0;
  std::uint64_t random = 0;
  bool searches = false;          // is counted in searching_
  std::uint64_t signal_mask = 0;  // of its thread, as the kernel has it
  RunQueue ready;
  ParkedHints parked;
  hl::far::detail::thread_slot* slot = nullptr;  // of its thread, for scopes of far objects; none without a runtime
  // Asleep. The list is guarded by Scheduler::sleepers_guard_.
  Worker* next_sleeper = nullptr;
  bool listed = false;
  bool in_poller = false;
  std::atomic<std::uint32_t> woken{0};  // futex
};

class Scheduler {
 public:
  static constexpr unsigned kWorkersMax = 256;

  // Not owned by a smart pointer of the standard library: lies in local memory. Throws std::system_error.
  static Scheduler* create(const hl::fibers::run_options& options);
  void destroy();
  // Runs until no fiber is left. The first fiber has been spawned.
  void run();

  Fiber* spawn(const hl::fibers::fiber_options& options, const hl::fibers::detail::body& what, void* from);
  void release(Fiber& fiber);  // one reference less
  // Any thread.
  void make_ready(Fiber& fiber);

  Timers& timers() { return timers_; }
  void new_deadline(std::uint64_t deadline_ns);  // after a timer was added
  const std::shared_ptr<Poller>& poller() const { return poller_; }
  unsigned workers() const { return worker_count_; }
  bool hints_park() const { return hints_park_; }

 private:
  Scheduler(const hl::fibers::run_options& options, unsigned workers, std::shared_ptr<Poller> poller);
  void work(Worker& worker);
  Fiber* next(Worker& worker);
  Fiber* take_common(Worker& worker);
  Fiber* steal(Worker& worker);
  Fiber* search(Worker& worker);
  void run_fiber(Worker& worker, Fiber& fiber);
  void after(Worker& worker, Fiber& fiber);
  void ended(Fiber& fiber);
  bool poll_all(Worker& worker);
  bool gather(Worker& worker, std::uint32_t others);
  bool anything_ready() const;
  void sleep(Worker& worker);
  void sleep_in_poller(Worker& worker);
  std::uint64_t longest_sleep_ns();
  bool watch_objects();
  void begin_search(Worker& worker);
  void end_search(Worker& worker, bool found);
  void wake_one();
  bool strike_sleeper(Worker& worker);
  void wake_all();
  void push_common(Fiber& fiber);

  const std::size_t stack_bytes_;
  const std::uint64_t spin_ns_;
  const unsigned worker_count_;
  const bool hints_park_;
  Worker* workers_ = nullptr;
  std::shared_ptr<Poller> poller_;
  Stacks stacks_;
  Timers timers_;
  std::atomic<std::uint64_t> next_id_{1};
  alignas(64) std::atomic<std::uint64_t> alive_{0};
  std::atomic<bool> stopping_{false};

  alignas(64) std::atomic<std::uint32_t> searching_{0};  // workers that look for work
  std::atomic<std::uint32_t> sleeping_{0};
  std::atomic<bool> poller_taken_{false};          // a worker sleeps in it, or is about to
  std::atomic<std::uint64_t> poller_until_ns_{0};  // that one sleeps until then; 0: nobody
  hl::fibers::detail::spin_lock sleepers_guard_;
  Worker* sleepers_ = nullptr;

  alignas(64) hl::fibers::detail::spin_lock common_guard_;  // of the list
  FiberList common_;
  std::atomic<std::uint64_t> common_count_{0};
};

// Of the calling thread. Never inlined: a fiber asks again after each switch, for it may be on another thread then,
// and a compiler that saw the thread_local would keep its address.
Worker* current_worker();
Fiber* current_fiber();  // nullptr in ordinary threads

// Leaves the calling fiber; returns when it goes on.
void leave(Leaving why);
inline void park() { leave(Leaving::parks); }
void unpark(Fiber& fiber);  // once for each park(). Any thread

}  // namespace hinterland::fiber
