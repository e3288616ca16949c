#include "object/grace.hpp"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>

#include <new>

#include "base/clock.hpp"
#include "base/raw_call.hpp"

namespace hinterland::object {
namespace {

// Scopes are short: most end while one looks a few times. After that, the processor is better given to them.
constexpr int kLooksBeforeYield = 64, kYieldsBeforeSleep = 64;
constexpr std::uint64_t kSleepNs = 50'000;

void sleep_ns(std::uint64_t ns) {
  timespec time{0, static_cast<long>(ns)};
  raw::call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, raw::word_of(&time), 0);
}

}  // namespace

Status Grace::begin() {
  const long done = raw::call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0);
  if (done == 0) return {};
  return std::unexpected(
      Error::make(static_cast<int>(-done), "membarrier(2) is not to be had")
          .remedy("far objects need it: Linux 4.14 or newer, and a system call filter that allows it"));
}

Grace::Slot* Grace::enter() {
  LockGuard guard(mutex_);
  if (!unused_.empty()) {
    Slot* slot = unused_.back();
    unused_.pop_back();
    return slot;
  }
  try {
    unused_.reserve(slots_.size() + 1);  // leave() does not fail
    Slot& slot = slots_.emplace_back();
    slot.lane = static_cast<std::uint32_t>(slots_.size() - 1);
    slot.phase.store(parity_ | (pressed() ? Slot::kPressed : 0), std::memory_order_relaxed);
    return &slot;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void Grace::leave(Slot* slot) {
  LockGuard guard(mutex_);
  unused_.push_back(slot);
}

void Grace::show_phase_locked() {
  // relaxed: a thread that still sees the old parity counts under it, and wait() looks at both.
  for (Slot& slot : slots_) slot.phase.store(parity_ | (pressed() ? Slot::kPressed : 0), std::memory_order_relaxed);
}

void Grace::set_pressed(bool pressed) {
  if (this->pressed() == pressed) return;
  LockGuard guard(mutex_);
  pressed_.store(pressed, std::memory_order_relaxed);
  show_phase_locked();
}

bool Grace::drained(std::uint32_t parity) {
  LockGuard guard(mutex_);
  for (const Slot& slot : slots_)
    // acquire: pairs with the release of scope::close()
    if (slot.active[parity].load(std::memory_order_acquire) != 0) return false;
  return true;
}

bool Grace::drain(std::uint32_t parity, const std::atomic<bool>& give_up, std::uint64_t end_ns) {
  for (int look = 0; !drained(parity); ++look) {
    if (give_up.load(std::memory_order_relaxed) || (end_ns != 0 && now_ns() > end_ns)) return false;
    if (look < kLooksBeforeYield)
      __builtin_ia32_pause();
    else if (look < kLooksBeforeYield + kYieldsBeforeSleep)
      sched_yield();
    else
      sleep_ns(kSleepNs);
  }
  return true;
}

bool Grace::wait(const std::atomic<bool>& give_up, std::uint64_t limit_ns) {
  LockGuard guard(waiting_);
  const std::uint64_t end_ns = limit_ns == 0 ? 0 : now_ns() + limit_ns;
  raw::call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0);
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

}  // namespace hinterland::object
