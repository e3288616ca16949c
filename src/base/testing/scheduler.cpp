#include "base/testing/scheduler.hpp"

#include <array>
#include <utility>

#include "base/check.hpp"
#include "base/testing/stepped_lock.hpp"

namespace hinterland::testing {
namespace {

Scheduler* g_running = nullptr;
std::vector<std::unique_ptr<Fiber>> g_idle;  // stacks are worth keeping from one schedule to the next

}  // namespace

Scheduler* Scheduler::running() { return g_running; }

Scheduler::~Scheduler() {
  for (auto& fiber : fibers_) g_idle.push_back(std::move(fiber));
}

void Scheduler::add(std::string name, std::function<void()> body, bool background) {
  HL_CHECK(movers_.size() < kMoversMax);
  movers_.emplace_back();
  movers_.back().name = std::move(name);
  movers_.back().background = background;
  if (g_idle.empty()) g_idle.push_back(std::make_unique<Fiber>());
  fibers_.push_back(std::move(g_idle.back()));
  g_idle.pop_back();
  fibers_[movers_.size() - 1]->set_body([this, index = movers_.size() - 1, work = std::move(body)] {
    try {
      work();
    } catch (const StopMover&) {  // NOLINT(bugprone-empty-catch): thrown to leave the mover's stack, no more
    }
    show_late_stores(index);
    movers_[index].done = true;
  });
}

bool Scheduler::can_go_on(const Mover& mover) const {
  if (mover.done) return false;
  if (mover.napping_since != 0) return mover.napping_since != steps_;
  return mover.waits_for == nullptr || mover.ready();
}

bool Scheduler::others_done() const {
  for (const Mover& mover : movers_)
    if (!mover.background && !mover.done) return false;
  return true;
}

std::string Scheduler::who_waits() const {
  std::string text;
  for (const Mover& mover : movers_)
    if (!mover.done)
      text += mover.name + " waits for " +
              (mover.waits_for != nullptr ? mover.waits_for
               : mover.napping_since != 0 ? "a nap"
                                          : "nothing") +
              "; ";
  return text;
}

std::string Scheduler::run(const Choose& choose, std::uint64_t steps_max) {
  steps_ = 1;
  choose_ = &choose;
  std::string wrong;
  for (unsigned idle = 0;;) {
    ready_.clear();
    bool any_left = false;
    for (std::size_t i = 0; i < movers_.size(); ++i) {
      any_left |= !movers_[i].done;
      if (can_go_on(movers_[i])) ready_.push_back(i);
    }
    if (!any_left) break;
    if (ready_.empty()) {
      // Time passes: those that nap wake up.
      for (std::size_t i = 0; i < movers_.size(); ++i)
        if (!movers_[i].done && movers_[i].napping_since != 0) ready_.push_back(i);
      if (ready_.empty() || ++idle > kIdleRoundsMax) {
        wrong = "I6: everybody waits: " + who_waits();
        break;
      }
    } else {
      idle = 0;
    }
    if (steps_ == steps_max) {
      wrong = "I6: still going on after " + std::to_string(steps_) + " steps: " + who_waits();
      break;
    }
    current_ = ready_[ready_.size() == 1 ? 0 : choose(ready_)];
    Mover& mover = movers_[current_];
    mover.waits_for = nullptr;
    mover.napping_since = 0;
    ++steps_;
    listener_.entering(current_);
    g_running = this;
    fibers_[current_]->enter();
    g_running = nullptr;
    listener_.stepped();
  }
  // Movers that wait for ever keep their stacks, and these are left alone with them.
  if (!wrong.empty())
    for (auto& fiber : fibers_) static_cast<void>(fiber.release());
  if (!wrong.empty()) fibers_.clear();
  return wrong;
}

void Scheduler::leave() {
  g_running = nullptr;
  fibers_[current_]->leave();
}

void Scheduler::point(std::uint64_t what) {
  movers_[current_].pending = what;
  leave();
  Mover& mover = movers_[current_];
  mover.history = mix(mover.history, what);
}

void Scheduler::observe(std::uint64_t value) { movers_[current_].history = mix(movers_[current_].history, value); }

void Scheduler::block_until(const char* what, const std::function<bool()>& ready) {
  while (!ready()) {
    Mover& mover = movers_[current_];
    mover.waits_for = what;
    mover.ready = ready;
    mover.pending = mix(1, reinterpret_cast<std::uintptr_t>(what));
    leave();
  }
}

void Scheduler::nap() {
  movers_[current_].napping_since = steps_;
  movers_[current_].pending = 2;
  leave();
}

void Scheduler::nap_at(const void* site) {
  Mover& mover = movers_[current_];
  if (mover.napped_at == site)
    mover.history = mover.history_at_nap;
  else
    mover.history_at_nap = mover.history;
  mover.napped_at = site;
  block_until("a change", [this, before = changes_] { return changes_ != before; });
}

bool Scheduler::delays(void* what, std::uint64_t value, void (*apply)(void* what, std::uint64_t value)) {
  if (!listener_.may_be_late(what)) return false;
  point(mix(14, listener_.name_of(what)));
  // Once the store is seen, nobody knows whether it was late.
  const std::uint64_t known = movers_[current_].history;
  const bool late = decide(2) == 1;
  movers_[current_].history = known;
  if (!late) return show_late_stores(current_), false;  // what was stored before is seen before
  movers_[current_].late.push_back({what, value, apply});
  return true;
}

std::uint64_t Scheduler::own_view(const void* what, std::uint64_t value) const {
  for (const LateStore& store : movers_[current_].late)
    if (store.what == what) value = store.value;
  return value;
}

void Scheduler::show_late_stores(std::size_t mover) {
  for (const LateStore& store : movers_[mover].late) store.apply(store.what, store.value), ++changes_;
  movers_[mover].late.clear();
}

void Scheduler::show_all_late_stores() {
  for (std::size_t i = 0; i < movers_.size(); ++i) show_late_stores(i);
}

std::size_t Scheduler::decide(std::size_t choices) {
  static constexpr std::array<std::size_t, 32> kNumbers{};  // there is no mover behind a choice
  if (choices < 2) return 0;
  HL_CHECK(choices <= kNumbers.size());
  movers_[current_].pending = mix(3, choices);
  g_running = nullptr;  // whoever chooses looks at the state, which is no step
  std::size_t chosen = (*choose_)(std::span(kNumbers).first(choices));
  g_running = this;
  observe(chosen);
  return chosen;
}

void Scheduler::futex_wait(const void* word, const std::function<bool()>& unchanged) {
  if (!unchanged()) return;
  movers_[current_].futex = word;
  block_until("a futex", [this, mover = current_] { return movers_[mover].futex == nullptr; });
}

void Scheduler::futex_wake(const void* word) {
  for (Mover& mover : movers_)
    if (mover.futex == word) mover.futex = nullptr;
}

void Scheduler::spin_check(const void* word, std::uint64_t value) {
  Mover& mover = movers_[current_];
  if (mover.spun_on != word || mover.spun_value != value) {
    mover.spun_on = word;
    mover.spun_value = value;
    mover.spins = 0;
  }
  // Twice may be two places of the code; three times in a row is a loop.
  if (++mover.spins < 3) return;
  block_until("a busy page", [word, value] { return *static_cast<const std::uint64_t*>(word) != value; });
  movers_[current_].spun_on = nullptr;
}

std::uint64_t Scheduler::knowledge() const {
  std::uint64_t hash = 0;
  for (const Mover& mover : movers_) {
    hash = mix(mix(hash, mover.done ? 3 : mover.history), mover.done ? 3 : mover.pending);
    // It may wait for a change: whether there was one is no part of what it waits for.
    if (!mover.done && mover.waits_for != nullptr) hash = mix(hash, mover.ready());
    for (const LateStore& store : mover.late) hash = mix(hash, store.value + 4);
  }
  return hash;
}

void step_before(AtomicOperation operation, const void* what, std::uint64_t operand, bool word) {
  Scheduler* scheduler = Scheduler::running();
  if (scheduler == nullptr) return;
  Scheduler::Listener& listener = scheduler->listener();
  if (operation == AtomicOperation::glance || operation == AtomicOperation::load) {
    // Who holds a page looks at its word as often as it likes, and does not wait for itself.
    if (!word || listener.held_by_mover(what) || !listener.steps_at_load(what)) return;
    if (listener.is_waited_for(what)) scheduler->spin_check(what, operand);
    if (operation == AtomicOperation::load) scheduler->point(mix(4, listener.name_of(what)));
    return;
  }
  scheduler->spins_no_more();
  scheduler->goes_on();
  std::uint64_t name = mix(4 + static_cast<unsigned>(operation), listener.name_of(what));
  scheduler->point(mix(name, listener.meaning_of(what, operand)));
  scheduler->show_late_stores(scheduler->current());
}

void step_after(AtomicOperation operation, const void* what, std::uint64_t before, std::uint64_t after, bool word,
                std::memory_order order) {
  Scheduler* scheduler = Scheduler::running();
  if (scheduler == nullptr) return;
  Scheduler::Listener& listener = scheduler->listener();
  bool looks = operation == AtomicOperation::glance || operation == AtomicOperation::load;
  listener.operated(operation, what, order);
  if (!looks && before != after) scheduler->changed();
  if (looks && word && listener.held_by_mover(what)) return;  // nothing that it does not know
  if (operation != AtomicOperation::store) scheduler->observe(listener.meaning_of(what, before));
  if (word && before != after) listener.word_changed(what, before, after);
}

bool step_delays(void* what, std::uint64_t value, void (*apply)(void* what, std::uint64_t value)) {
  Scheduler* scheduler = Scheduler::running();
  return scheduler != nullptr && scheduler->delays(what, value, apply);
}

std::uint64_t step_own_view(const void* what, std::uint64_t value) {
  Scheduler* scheduler = Scheduler::running();
  return scheduler != nullptr ? scheduler->own_view(what, value) : value;
}

void step_before_lock(const void* mutex) {
  Scheduler* scheduler = Scheduler::running();
  if (scheduler == nullptr || !scheduler->listener().steps_at_lock(mutex)) return;
  scheduler->point(mix(12, scheduler->listener().name_of(mutex)));
}

void step_locked(const void* mutex) {
  Scheduler* scheduler = Scheduler::running();
  if (scheduler == nullptr) return;
  scheduler->show_late_stores(scheduler->current());
  scheduler->listener().locked(mutex);
}

void step_before_unlock(const void* mutex) {
  if (Scheduler* scheduler = Scheduler::running()) scheduler->listener().unlocking(mutex);
}

}  // namespace hinterland::testing
