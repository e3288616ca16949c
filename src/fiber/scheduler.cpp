// Picking the next fiber, running it, and what is done for it when it leaves.
#include "fiber/scheduler.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "fiber/overflow.hpp"

namespace hinterland::fiber {
namespace {

thread_local Worker* t_worker = nullptr;

// Every so many fibers a busy worker looks at the common queue, timers and sockets (Go's figure; a prime).
constexpr std::uint32_t kLookAround = 61;
// A worker with parked fibers looks for arrivals whenever it has nothing else to run, and every so many fibers:
// asking the runtime takes about half a microsecond, in system calls.
constexpr std::uint32_t kArrivalsLook = 8;
constexpr std::uint32_t kParkedLook = 16;  // so many of its parked fibers it asks about then

unsigned cpus_allowed() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<unsigned>(std::max(CPU_COUNT(&set), 1));
}

}  // namespace

__attribute__((noinline)) Worker* current_worker() {
  asm volatile("" ::: "memory");  // so that two calls are not made one
  return t_worker;
}

Fiber* current_fiber() {
  Worker* worker = current_worker();
  return worker != nullptr ? worker->current : nullptr;
}

// The last frame that a fiber has while it is away. Not inlined: nothing of the old thread may be kept over the
// switch.
__attribute__((noinline)) void leave(Leaving why) {
  Worker* worker = current_worker();
  Fiber& self = *worker->current;
  self.leaving = why;
  // Where a frame was larger than the guard, the neighbour may be damaged already: no way on.
  if (static_cast<std::byte*>(__builtin_frame_address(0)) < self.stack.low) report_overflow(self);
  switch_over<Worker>(self.context, worker->context, &self, why == Leaving::ends);
}

void unpark(Fiber& fiber) {
  // acq_rel: what the waker did is seen by the fiber, and it is off its stack when we make it ready
  if (fiber.parking.exchange(Parking::woken, std::memory_order_acq_rel) != Parking::parked) return;
  fiber.parking.store(Parking::awake, std::memory_order_relaxed);
  fiber.scheduler->make_ready(fiber);
}

Scheduler::Scheduler(const hl::fibers::run_options& options, unsigned workers, std::shared_ptr<Poller> poller)
    : stack_bytes_(options.stack_bytes),
      spin_ns_(static_cast<std::uint64_t>(std::chrono::nanoseconds(options.spin).count())),
      worker_count_(workers),
      hints_park_(options.hints_park),
      poller_(std::move(poller)) {}

Scheduler* Scheduler::create(const hl::fibers::run_options& options) {
  unsigned workers = options.workers != 0 ? options.workers : cpus_allowed();
  if (workers > kWorkersMax) workers = kWorkersMax;
  auto poller = Poller::create();
  if (!poller) throw std::system_error(poller.error().code(), std::generic_category(), poller.error().what());
  void* memory = map_local(sizeof(Scheduler) + workers * sizeof(Worker));
  if (memory == nullptr) throw std::system_error(errno, std::generic_category(), "no memory for a fiber scheduler");
  auto* scheduler = new (memory) Scheduler(options, workers, std::move(*poller));
  static_assert(sizeof(Scheduler) % alignof(Worker) == 0);
  scheduler->workers_ = reinterpret_cast<Worker*>(scheduler + 1);
  for (unsigned i = 0; i < workers; ++i) {
    Worker* worker = new (scheduler->workers_ + i) Worker;
    worker->scheduler = scheduler;
    worker->index = i;
    worker->random = i + 1;
  }
  begin_hinting();
  begin_objects();
  return scheduler;
}

void Scheduler::destroy() {
  end_objects();
  end_hinting();
  std::size_t bytes = sizeof(Scheduler) + worker_count_ * sizeof(Worker);
  for (unsigned i = 0; i < worker_count_; ++i) workers_[i].~Worker();
  this->~Scheduler();
  unmap_local(this, bytes);
}

void Scheduler::run() {
  std::vector<std::thread> threads;
  try {
    for (unsigned i = 1; i < worker_count_; ++i)
      threads.emplace_back([this, i] {
        char name[16];
        std::snprintf(name, sizeof name, "hl-fiber-%u", i);
        pthread_setname_np(pthread_self(), name);
        work(workers_[i]);
      });
  } catch (const std::exception&) {
    // No more threads than these: the fibers run on fewer.
  }
  work(workers_[0]);
  for (std::thread& thread : threads) thread.join();
}

void Scheduler::work(Worker& worker) {
  SignalStack signal_stack;
  // The system call itself: in signal mode libc's does not say all.
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &worker.signal_mask, sizeof worker.signal_mask);
  t_worker = &worker;
  {
    const ThreadWithObjects objects(&worker.slot);
    while (Fiber* fiber = next(worker)) run_fiber(worker, *fiber);
  }
  t_worker = nullptr;
}

// nullptr: no fiber is left.
Fiber* Scheduler::next(Worker& worker) {
  ++worker.tick;
  if (worker.parked.size() != 0 && (worker.tick % kArrivalsLook == 0 || worker.ready.empty())) gather(worker, 0);
  if (worker.tick % kLookAround == 0) {
    poll_all(worker);
    if (Fiber* fiber = take_common(worker)) return fiber;
  }
  if (Fiber* fiber = worker.ready.take()) return fiber;
  while (!stopping_.load(std::memory_order_acquire)) {
    if (Fiber* fiber = search(worker)) return fiber;
    sleep(worker);
  }
  return nullptr;
}

// One for now, and a share of the rest for the own queue.
Fiber* Scheduler::take_common(Worker& worker) {
  if (common_count_.load(std::memory_order_relaxed) == 0) return nullptr;
  std::lock_guard lock(common_guard_);
  Fiber* fiber = common_.pop();
  if (fiber == nullptr) return nullptr;
  std::uint64_t taken = 1,
                share = std::min<std::uint64_t>(common_count_.load() / worker_count_, RunQueue::kCapacity / 2);
  while (taken < share && worker.ready.size() < RunQueue::kCapacity / 2) {
    Fiber* another = common_.pop();
    if (another == nullptr) break;
    worker.ready.push(another);
    ++taken;
  }
  common_count_.fetch_sub(taken, std::memory_order_relaxed);
  return fiber;
}

// Half of what another worker has, beginning with a random one.
Fiber* Scheduler::steal(Worker& worker) {
  worker.random = worker.random * 6364136223846793005u + 1442695040888963407u;
  auto start = static_cast<std::uint32_t>(worker.random >> 33) % worker_count_;
  for (std::uint32_t i = 0; i < worker_count_; ++i) {
    Worker& victim = workers_[(start + i) % worker_count_];
    if (&victim == &worker) continue;
    std::uint32_t half = victim.ready.size() / 2;
    Fiber* fiber = victim.ready.take();
    if (fiber == nullptr) continue;
    for (; half > 1; --half) {
      Fiber* another = victim.ready.take();
      if (another == nullptr) break;
      worker.ready.push(another);  // there is room: it was empty, and nobody else adds
    }
    return fiber;
  }
  return nullptr;
}

void Scheduler::run_fiber(Worker& worker, Fiber& fiber) {
  for (;;) {
    worker.current = &fiber;
    if ((fiber.scopes[0] | fiber.scopes[1]) != 0) bring_scopes(worker.slot, fiber.scopes);
    switch_over<Fiber>(worker.context, fiber.context, &worker);
    if (has_scopes(worker.slot)) take_scopes(worker.slot, fiber.scopes);
    worker.current = nullptr;
    // Pages that were there after all, or came at once: no other fiber had to run.
    if (fiber.leaving != Leaving::hints || hint_begin(fiber.hint)) break;
  }
  after(worker, fiber);
}

// The fiber is off its stack.
void Scheduler::after(Worker& worker, Fiber& fiber) {
  switch (fiber.leaving) {
    case Leaving::yields:
      // There is as much to do as before: nobody has to be woken.
      if (!worker.ready.push(&fiber)) push_common(fiber);
      break;
    case Leaving::hints:
    case Leaving::arrival:
      worker.parked.add(fiber);
      break;
    case Leaving::parks: {
      Parking awake = Parking::awake;
      if (fiber.parking.compare_exchange_strong(awake, Parking::parked, std::memory_order_acq_rel)) break;
      fiber.parking.store(Parking::awake, std::memory_order_relaxed);  // woken before it had left
      make_ready(fiber);
      break;
    }
    case Leaving::ends:
      ended(fiber);
      break;
  }
}

void Scheduler::make_ready(Fiber& fiber) {
  Worker* worker = current_worker();
  if (worker == nullptr || worker->scheduler != this || !worker->ready.push(&fiber)) push_common(fiber);
  wake_one();
}

void Scheduler::push_common(Fiber& fiber) {
  std::lock_guard lock(common_guard_);
  common_.push(fiber);
  common_count_.fetch_add(1, std::memory_order_relaxed);
}

// What fibers wait for, timers and sockets; never blocks.
bool Scheduler::poll_all(Worker& worker) {
  bool any = gather(worker, worker_count_);
  if (timers_.next_ns() != kNever) any |= timers_.expire(now_ns());
  if (poller_->has_any()) any |= poller_->poll(0);
  return any;
}

// Arrivals of the worker's own fibers, and of so many others.
bool Scheduler::gather(Worker& worker, std::uint32_t others) {
  bool any = false, polled = false;
  for (std::uint32_t i = 0; i <= others && i < worker_count_; ++i) {
    ParkedHints& parked = workers_[(worker.index + i) % worker_count_].parked;
    if (parked.size() == 0) continue;
    if (!polled) hints_poll(), objects_poll();
    polled = true;
    any |= parked.look(i == 0 ? kParkedLook : parked.size(), [&](Fiber& fiber) { make_ready(fiber); });
  }
  return any;
}

}  // namespace hinterland::fiber
