#include "object/grace.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <new>
#include <utility>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/raw_call.hpp"
#include "object/all_threads.hpp"

namespace hinterland::object {
namespace {

// Scopes are short: most end while one looks a few times. After that, the processor is better given to them.
constexpr int kLooksBeforeYield = kStepped ? 0 : 64, kYieldsBeforeSleep = kStepped ? INT_MAX : 64;
constexpr std::uint64_t kSleepNs = 50'000;

void sleep_ns(std::uint64_t ns) {
  timespec time{0, static_cast<long>(ns)};
  raw::call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, raw::word_of(&time), 0);
}

void pause_after(int look) {
  if (look < kLooksBeforeYield)
    __builtin_ia32_pause();
  else if (look < kLooksBeforeYield + kYieldsBeforeSleep)
    sched_yield();
  else
    sleep_ns(kSleepNs);
}

Grace::Stack own_stack() {
  pthread_attr_t attributes;
  if (gettid() == getpid() || pthread_getattr_np(pthread_self(), &attributes) != 0) return {0, 0};
  void* begin = nullptr;
  std::size_t bytes = 0;
  pthread_attr_getstack(&attributes, &begin, &bytes);
  pthread_attr_destroy(&attributes);
  return {reinterpret_cast<std::uintptr_t>(begin), reinterpret_cast<std::uintptr_t>(begin) + bytes};
}

}  // namespace

Status Grace::begin() {
  const int error = all_threads::allow_barriers();
  if (error == 0) return {};
  return std::unexpected(
      Error::make(error, "membarrier(2) is not to be had")
          .remedy("far objects need it: Linux 4.14 or newer, and a system call filter that allows it"));
}

Status Grace::begin_guards() {
  if (const int error = all_threads::allow_restarts(); error != 0)
    return std::unexpected(Error::make(error, "membarrier(2) cannot restart sequences")
                               .remedy("guards need it: Linux 5.10 or newer with CONFIG_RSEQ"));
  has_guards_.store(true, std::memory_order_relaxed);
  return {};
}

// begin_guards() has tried it. A filter that forbids it later would leave guards under way while bytes are moved.
void Grace::restart_guards() { HL_CHECK(all_threads::restart_sequences()); }

thread_local Grace::Slot* Grace::t_own = nullptr;
thread_local std::uint32_t Grace::t_own_users = 0, Grace::t_strange_calls = 0;

Grace::Slot* Grace::enter() {
  if (t_own != nullptr) return ++t_own_users, t_own;
  const Stack stack = own_stack();
  LockGuard guard(mutex_);
  if (unused_.empty()) try {
      unused_.reserve(threads_.size() + 1);  // leave() does not fail
      Thread& made = threads_.emplace_back();
      made.slot.lane = static_cast<std::uint32_t>(threads_.size() - 1);
      unused_.push_back(&made);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  Thread& thread = *unused_.back();
  unused_.pop_back();
  thread.stack = stack;
  thread.used = true;
  thread.slot.phase.store(phase_locked(thread.slot), std::memory_order_relaxed);
  t_own_users = 1;
  return t_own = &thread.slot;
}

void Grace::leave(Slot* slot) {
  if (slot != t_own || --t_own_users != 0) return;
  t_own = nullptr;
  LockGuard guard(mutex_);
  Thread& thread = threads_[slot->lane];
  thread.used = false;
  unused_.push_back(&thread);
}

std::uint32_t Grace::phase_locked(const Slot& slot) const {
  return parity_ | (pressed() ? Slot::kPressed : 0) | (forking_ != nullptr && forking_ != &slot ? Slot::kForking : 0);
}

void Grace::show_phase_locked() {
  // relaxed: a thread that still sees the old parity counts under it, and wait() looks at both.
  for (Thread& each : threads_) each.slot.phase.store(phase_locked(each.slot), std::memory_order_relaxed);
}

void Grace::set_pressed(bool pressed) {
  if (this->pressed() == pressed) return;
  LockGuard guard(mutex_);
  pressed_.store(pressed, std::memory_order_relaxed);
  show_phase_locked();
}

// Counted as nobody's first, and only then no longer as the thread's, so that drained() finds them in one of both.
void Grace::take_scopes(Slot& slot, std::uint32_t* counts) {
  for (int parity : {0, 1}) {
    // relaxed: only this thread writes it
    const std::uint32_t open = slot.active[parity].load(std::memory_order_relaxed);
    if (open == 0) continue;
    counts[parity] += open;
    away_[parity].fetch_add(kOneChange + open, std::memory_order_relaxed);
    // release: who sees it at 0 sees that away_ has changed. Pairs with drained().
    slot.active[parity].store(0, std::memory_order_release);
  }
}

void Grace::bring_scopes(Slot& slot, std::uint32_t* counts) {
  for (int parity : {0, 1}) {
    const std::uint32_t open = std::exchange(counts[parity], 0);
    if (open == 0) continue;
    slot.active[parity].store(slot.active[parity].load(std::memory_order_relaxed) + open, std::memory_order_relaxed);
    // release: who sees that they are no longer nobody's sees them in the slot. Pairs with drained().
    away_[parity].fetch_add(kOneChange - open, std::memory_order_release);
  }
}

// A scope that is open is found, for between the two looks at away_ it was in one slot all the time: who has brought
// it there did that before the first, and whoever takes it away before its slot is read shows in the second.
bool Grace::drained(std::uint32_t parity) {
  LockGuard guard(mutex_);
  const std::uint64_t before = away_[parity].load(std::memory_order_acquire);
  if (before % kOneChange != 0) return false;
  for (const Thread& each : threads_)
    // acquire: pairs with the release of scope::close(), and of take_scopes()
    if (each.slot.active[parity].load(std::memory_order_acquire) != 0) return false;
  return away_[parity].load(std::memory_order_relaxed) == before;
}

bool Grace::drain(std::uint32_t parity, const std::atomic<bool>& give_up, std::uint64_t end_ns) {
  for (int look = 0; !drained(parity); ++look) {
    if (give_up.load(std::memory_order_relaxed) || (end_ns != 0 && now_ns() > end_ns)) return false;
    pause_after(look);
  }
  return true;
}

bool Grace::wait(const std::atomic<bool>& give_up, std::uint64_t limit_ns) {
  LockGuard guard(waiting_);
  const std::uint64_t end_ns = limit_ns == 0 ? 0 : now_ns() + limit_ns;
  all_threads::pass_a_barrier();
  if (has_guards_.load(std::memory_order_relaxed)) restart_guards();
  // Stragglers, which read the parity before the last change and counted after it. No new ones come, so this ends.
  if (!drain(parity_ ^ 1, give_up, end_ns)) return false;
  const std::uint32_t old = parity_;
  {
    LockGuard slots(mutex_);
    parity_ ^= 1;
    show_phase_locked();
  }
  return drain(old, give_up, end_ns);
}

// --- fork
// ------------------------------------------------------------------------------------------------------------

// seq_cst, here and in begin_fork(): one of the two sees the other.
void Grace::begin_strangers_call() {
  if (t_strange_calls++ != 0) {
    strangers_.fetch_add(1);
    return;
  }
  for (;;) {
    strangers_.fetch_add(1);
    if (closed_.load() == 0) return;
    strangers_.fetch_sub(1);
    futex_wait(&closed_, 1);
  }
}

void Grace::end_strangers_call() {
  --t_strange_calls;
  strangers_.fetch_sub(1, std::memory_order_release);  // pairs with outside()
}

void Grace::wait_for_fork(Slot* slot) {
  if (t_strange_calls != 0) return;  // a signal's handler, within a call that the fork waits for
  do {
    slot->inside.store(0, std::memory_order_release);
    while (closed_.load(std::memory_order_acquire) != 0) futex_wait(&closed_, 1);
    slot->inside.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // as where it began
  } while ((slot->phase.load(std::memory_order_relaxed) & Slot::kForking) != 0);
}

bool Grace::outside() {
  LockGuard guard(mutex_);
  // acquire: pairs with the releases at the end of calls
  if (strangers_.load(std::memory_order_acquire) != t_strange_calls) return false;
  for (const Thread& each : threads_)
    if (&each.slot != t_own && each.slot.inside.load(std::memory_order_acquire) != 0) return false;
  return true;
}

void Grace::begin_fork() {
  static constinit Slot nobody;
  {
    LockGuard guard(mutex_);
    closed_.store(1);
    forking_ = t_own != nullptr ? t_own : &nobody;
    show_phase_locked();
  }
  all_threads::pass_a_barrier();
  for (int look = 0; !outside(); ++look) pause_after(look);
}

void Grace::end_fork_in_parent() {
  forking_ = nullptr;
  show_phase_locked();
  mutex_.unlock();
  closed_.store(0, std::memory_order_release);
  futex_wake(&closed_, INT32_MAX);
}

std::vector<Grace::Stack> Grace::end_fork_in_child() {
  mutex_.reset_after_fork();
  waiting_.reset_after_fork();
  closed_.store(0, std::memory_order_relaxed);
  strangers_.store(t_strange_calls, std::memory_order_relaxed);
  for (auto& away : away_) away.store(0, std::memory_order_relaxed);  // fibers that will not run in the child
  forking_ = nullptr;
  show_phase_locked();
  std::vector<Stack> stacks;
  unused_.clear();
  for (Thread& each : threads_) {
    if (&each.slot == t_own) continue;
    if (each.used && each.stack.begin != each.stack.end) stacks.push_back(each.stack);
    each.used = false;
    for (auto* count : {&each.slot.active[0], &each.slot.active[1], &each.slot.inside})
      count->store(0, std::memory_order_relaxed);
    unused_.push_back(&each);
  }
  return stacks;
}

}  // namespace hinterland::object
