// A cooperative scheduler: movers are fibers of one thread, and another may go on wherever one comes to a point (an
// operation on a page's or an object's word, on a frame's state, a call of the kernel, an access of the program).
// Nothing sleeps; what would wait says for what. A schedule is the list of choices, so it can be repeated exactly.
//
// It also keeps what each mover knows, as a hash of all it has seen: movers that know the same over the same shared
// state go on alike, so a state that was reached before need not be explored again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/testing/fiber.hpp"
#include "base/testing/stepped_atomic.hpp"

namespace hinterland::testing {

inline std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

// Thrown where a mover without an end of its own (the fault handler) has nothing more to do.
struct StopMover {};

class Scheduler {
 public:
  struct Listener {
    virtual ~Listener() = default;
    virtual void word_changed(const void* cell, std::uint64_t before, std::uint64_t after) = 0;
    // What a page's word or a frame's state is called, whatever its address.
    virtual std::uint64_t name_of(const void* cell) = 0;
    // A page's word that this mover has the busy bit of: only who waits for it may change it meanwhile.
    virtual bool held_by_mover(const void* cell) = 0;
    // After each step of a mover.
    virtual void stepped() = 0;

    // --- what the page machine has no need of
    // A mover is about to go on: what each thread has of its own is this mover's now.
    virtual void entering(std::size_t mover) { static_cast<void>(mover); }
    // A mover that looks at this cell again and again waits for it to change.
    virtual bool is_waited_for(const void* cell) { return static_cast<void>(cell), true; }
    // A load of this cell is a place where another mover may go on.
    virtual bool steps_at_load(const void* cell) { return static_cast<void>(cell), true; }
    // A value of the cell, without addresses that differ from one run to the next.
    virtual std::uint64_t meaning_of(const void* cell, std::uint64_t value) { return static_cast<void>(cell), value; }
    // Whether others may see a relaxed store to the cell late: as long as its mover has passed no barrier.
    virtual bool may_be_late(const void* cell) { return static_cast<void>(cell), false; }
    virtual void operated(AtomicOperation operation, const void* cell, std::memory_order order) {
      static_cast<void>(operation), static_cast<void>(cell), static_cast<void>(order);
    }
    // Of a lock that steps (stepped_lock.hpp).
    virtual bool steps_at_lock(const void* mutex) { return static_cast<void>(mutex), true; }
    virtual void locked(const void* mutex) { static_cast<void>(mutex); }
    virtual void unlocking(const void* mutex) { static_cast<void>(mutex); }
  };
  // Which of the movers that can go on does: an index into `ready`, which is in ascending order.
  using Choose = std::function<std::size_t(std::span<const std::size_t> ready)>;

  static constexpr std::size_t kMoversMax = 16;

  static Scheduler* running();  // nullptr outside of movers

  explicit Scheduler(Listener& listener) : listener_(listener) {}
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  // A background mover ends when the others have (see others_done()).
  void add(std::string name, std::function<void()> body, bool background = false);
  // Until all are done; "" or why that will never be. Once.
  std::string run(const Choose& choose, std::uint64_t steps_max = UINT64_MAX);

  // --- from a mover -----------------------------------------------------------------------------------------------
  void point(std::uint64_t what);                            // about to do this; another may come first
  void observe(std::uint64_t value);                         // and this came of it
  void goes_on() { movers_[current_].napped_at = nullptr; }  // it is past the loop in which it napped
  void changed() { ++changes_, goes_on(); }
  // All that the mover still knows of what it has seen: at the head of a loop, so that how often and with what it
  // went round before makes no new state.
  void remember_only(std::uint64_t summary) { movers_[current_].history = summary; }
  std::uint64_t remembered() const { return movers_[current_].history; }
  // Until `ready`, a function of the shared state, holds.
  void block_until(const char* what, const std::function<bool()>& ready);
  // Until somebody else has done something; or at once, when nobody can.
  void nap();
  // Until somebody has changed an atomic; in a loop that looks again and remembers nothing of what it saw before:
  // `site` tells it from others. How often it has gone round makes no new state.
  void nap_at(const void* site);
  // What the mover has written so that others may see it late they see now. Of all movers: a barrier in each thread.
  void show_late_stores(std::size_t mover);
  void show_all_late_stores();
  // What nobody here decides (which request a device completes next, whether it fails): one of `choices`, each of
  // which some schedule takes.
  std::size_t decide(std::size_t choices);
  void futex_wait(const void* word, const std::function<bool()>& unchanged);
  void futex_wake(const void* word);
  // A mover that looks at the same word again and again waits for it to change: not worth a state each time.
  void spin_check(const void* word, std::uint64_t value);
  void spins_no_more() { movers_[current_].spun_on = nullptr; }
  // See step_delays() and step_own_view() of stepped_atomic.hpp.
  bool delays(void* what, std::uint64_t value, void (*apply)(void* what, std::uint64_t value));
  std::uint64_t own_view(const void* what, std::uint64_t value) const;

  Listener& listener() { return listener_; }
  std::size_t current() const { return current_; }
  const std::string& name(std::size_t mover) const { return movers_[mover].name; }
  std::size_t count() const { return movers_.size(); }
  bool others_done() const;
  std::uint64_t steps() const { return steps_; }
  std::uint64_t knowledge() const;

 private:
  struct LateStore {
    void* what;
    std::uint64_t value;
    void (*apply)(void* what, std::uint64_t value);
  };
  struct Mover {
    std::string name;
    bool background = false;
    bool done = false;
    std::uint64_t history = 0, pending = 0;
    const char* waits_for = nullptr;
    std::function<bool()> ready;  // while waits_for
    std::uint64_t napping_since = 0;
    const void* futex = nullptr;
    const void* napped_at = nullptr;
    std::uint64_t history_at_nap = 0;
    std::vector<LateStore> late;
    const void* spun_on = nullptr;
    std::uint64_t spun_value = 0;
    unsigned spins = 0;
  };
  static constexpr unsigned kIdleRoundsMax = 2000;  // nobody can go on but those that nap, and that changes nothing

  bool can_go_on(const Mover& mover) const;
  std::string who_waits() const;
  void leave();

  Listener& listener_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Mover> movers_;
  std::vector<std::size_t> ready_;
  const Choose* choose_ = nullptr;  // while run()
  std::size_t current_ = 0;
  std::uint64_t steps_ = 0, changes_ = 0;
};

}  // namespace hinterland::testing
