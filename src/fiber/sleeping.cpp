// Workers without work: looking for some, sleeping, being woken.
#include <algorithm>
#include <mutex>
#include <span>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "fiber/scheduler.hpp"

namespace hinterland::fiber {
namespace {

// How often the sleeper in the poller looks around. While pages are on their way: longer than a fetch over a fast
// network takes, and who spins gathers those anyway. While other workers run fibers, which may park, or wait for a
// time, and then compute for long: a thousand times a second, about half a percent of a CPU.
constexpr std::uint64_t kArrivalsLookNs = 100'000;
// So long a worker at least spins while a fiber of its own waits for pages: longer than a fetch over a fast network
// takes. To sleep before costs a timer interrupt, which comes later than the page.
constexpr std::uint64_t kArrivalsSpinNs = 250'000;
// While fibers wait for far objects, whose device wakes the sleeper: for those that a thread brings, who blocks.
constexpr std::uint64_t kObjectsLookNs = 500'000;
constexpr std::uint64_t kOthersLookNs = 1'000'000;

}  // namespace

void Scheduler::begin_search(Worker& worker) {
  if (worker.searches) return;
  worker.searches = true;
  searching_.fetch_add(1);
}

void Scheduler::end_search(Worker& worker, bool found) {
  if (!worker.searches) return;
  worker.searches = false;
  // Who comes with new work while we looked has not woken anybody: the last one does, before it has no time to.
  if (searching_.fetch_sub(1) == 1 && found) wake_one();
}

// Spins over all places where work can come from.
Fiber* Scheduler::search(Worker& worker) {
  begin_search(worker);
  std::uint64_t until = 0;
  for (unsigned round = 0; !stopping_.load(std::memory_order_relaxed); ++round) {
    poll_all(worker);
    Fiber* fiber = worker.ready.take();
    if (fiber == nullptr) fiber = take_common(worker);
    if (fiber == nullptr) fiber = steal(worker);
    if (fiber != nullptr) {
      end_search(worker, true);
      return fiber;
    }
    std::uint64_t now = now_ns();
    if (until == 0) until = now + (worker.parked.for_pages() != 0 ? std::max(spin_ns_, kArrivalsSpinNs) : spin_ns_);
    if (now >= until) break;
    for (int i = 0; i < 20; ++i) __builtin_ia32_pause();
  }
  return nullptr;
}

bool Scheduler::anything_ready() const {
  if (common_count_.load() != 0) return true;
  return std::any_of(workers_, workers_ + worker_count_, [](const Worker& worker) { return !worker.ready.empty(); });
}

// Listed first, then a last look: who adds work looks at the list after that (wake_one), so one of both sees the
// other.
void Scheduler::sleep(Worker& worker) {
  worker.woken.store(0, std::memory_order_relaxed);
  {
    std::lock_guard lock(sleepers_guard_);
    worker.next_sleeper = sleepers_;
    sleepers_ = &worker;
    worker.listed = true;
    sleeping_.fetch_add(1);
  }
  end_search(worker, false);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in wake_one()
  if (anything_ready() || stopping_.load()) {
    std::lock_guard lock(sleepers_guard_);
    strike_sleeper(worker);
  } else if (!poller_taken_.exchange(true)) {
    sleep_in_poller(worker);
  } else {
    while (worker.woken.load(std::memory_order_acquire) == 0) futex_wait(&worker.woken, 0);
  }
  // Who was woken counts as searching since then.
  worker.searches = worker.woken.load(std::memory_order_acquire) != 0;
}

void Scheduler::sleep_in_poller(Worker& worker) {
  {
    std::lock_guard lock(sleepers_guard_);
    worker.in_poller = worker.listed;
  }
  // Woken before that: nobody knew that the poller has to be interrupted.
  while (worker.woken.load(std::memory_order_acquire) == 0) {
    bool any = poller_->poll(longest_sleep_ns());
    poller_until_ns_.store(0);
    if (poll_all(worker) || any || anything_ready() || stopping_.load()) break;
  }
  {
    std::lock_guard lock(sleepers_guard_);
    worker.in_poller = false;
    strike_sleeper(worker);
  }
  poller_taken_.store(false);
}

std::uint64_t Scheduler::longest_sleep_ns() {
  poller_until_ns_.store(kNever);  // before the look at the timers: pairs with new_deadline()
  std::uint64_t longest = kNever, now = now_ns();
  bool parked = false, pages = false;
  for (const Worker& worker : std::span(workers_, worker_count_)) {
    parked |= worker.parked.size() != 0;
    pages |= worker.parked.for_pages() != 0;
  }
  if (sleeping_.load() < worker_count_) longest = kOthersLookNs;
  if (parked) longest = pages || !watch_objects() ? kArrivalsLookNs : kObjectsLookNs;
  if (std::uint64_t next = timers_.next_ns(); next != kNever)
    longest = std::min(longest, next > now ? next - now : 0);
  if (longest != kNever) poller_until_ns_.store(now + longest);
  return longest;
}

// The sleeper in the poller wakes when an object comes. False: no descriptor tells of that.
bool Scheduler::watch_objects() {
  const int descriptor = objects_descriptor();
  if (descriptor >= 0) poller_->watch_once(descriptor);
  return descriptor >= 0;
}

// The sleeper in the poller may have meant to sleep longer.
void Scheduler::new_deadline(std::uint64_t deadline_ns) {
  if (poller_until_ns_.load() > deadline_ns) poller_->interrupt();
}

// Under sleepers_guard_. False when somebody has woken it.
bool Scheduler::strike_sleeper(Worker& worker) {
  if (!worker.listed) return false;
  Worker** at = &sleepers_;
  while (*at != &worker) at = &(*at)->next_sleeper;
  *at = worker.next_sleeper;
  worker.listed = false;
  sleeping_.fetch_sub(1);
  return true;
}

// After work was added.
void Scheduler::wake_one() {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in sleep()
  if (sleeping_.load(std::memory_order_relaxed) == 0) return;
  std::uint32_t nobody = 0;
  if (!searching_.compare_exchange_strong(nobody, 1)) return;  // in the name of the one that we wake
  bool in_poller = false;
  Worker* worker = nullptr;
  {
    std::lock_guard lock(sleepers_guard_);
    worker = sleepers_;
    if (worker != nullptr) {
      in_poller = worker->in_poller;
      strike_sleeper(*worker);
      worker->woken.store(1, std::memory_order_release);  // pairs with sleep()
    }
  }
  if (worker == nullptr) {
    searching_.fetch_sub(1);
    return;
  }
  if (in_poller)
    poller_->interrupt();
  else
    futex_wake(&worker->woken, 1);
}

// At the end. Nobody sleeps after this: who is about to looks at stopping_.
void Scheduler::wake_all() {
  for (;;) {
    bool in_poller = false;
    Worker* worker = nullptr;
    {
      std::lock_guard lock(sleepers_guard_);
      worker = sleepers_;
      if (worker == nullptr) return;
      in_poller = worker->in_poller;
      strike_sleeper(*worker);
      searching_.fetch_add(1);
      worker->woken.store(1, std::memory_order_release);
    }
    if (in_poller)
      poller_->interrupt();
    else
      futex_wake(&worker->woken, 1);
  }
}

}  // namespace hinterland::fiber
