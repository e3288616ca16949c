#include "paging/testing/scheduler.hpp"

#include <array>
#include <utility>

#include "base/check.hpp"
#include "paging/testing/stepped_atomic.hpp"

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
  for (const Mover& mover : movers_)
    hash = mix(mix(hash, mover.done ? 3 : mover.history), mover.done ? 3 : mover.pending);
  return hash;
}

void step_before(AtomicOperation operation, const void* what, std::uint64_t operand, bool word) {
  Scheduler* scheduler = Scheduler::running();
  if (scheduler == nullptr) return;
  if (operation == AtomicOperation::glance || operation == AtomicOperation::load) {
    // Who holds a page looks at its word as often as it likes, and does not wait for itself.
    if (!word || scheduler->listener().held_by_mover(what)) return;
    scheduler->spin_check(what, operand);
    if (operation == AtomicOperation::load) scheduler->point(mix(4, scheduler->listener().name_of(what)));
    return;
  }
  scheduler->spins_no_more();
  std::uint64_t name = mix(4 + static_cast<unsigned>(operation), scheduler->listener().name_of(what));
  scheduler->point(mix(name, operand));
}

void step_after(AtomicOperation operation, const void* what, std::uint64_t before, std::uint64_t after, bool word) {
  Scheduler* scheduler = Scheduler::running();
  if (scheduler == nullptr) return;
  bool looks = operation == AtomicOperation::glance || operation == AtomicOperation::load;
  if (looks && word && scheduler->listener().held_by_mover(what)) return;  // nothing that it does not know
  if (operation != AtomicOperation::store) scheduler->observe(before);
  if (word && before != after) scheduler->listener().word_changed(what, before, after);
}

}  // namespace hinterland::testing
