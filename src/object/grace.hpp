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
//
// A fiber that leaves its thread takes its scopes along: they are then counted as nobody's, and in the thread where
// it goes on from there on. So counts move while drained() adds them up, and it looks again when one has.
//
// By the same barrier a fork waits until no other thread is within a call of the runtime, or an undivided step of a
// container: in the child nothing is half done, and no lock is held by a thread that is not there.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "hinterland/object_runtime.hpp"
#include "object/stepped.hpp"

namespace hinterland::object {

class Grace {
 public:
  using Slot = hl::far::detail::thread_slot;

  // Once a process, before the first wait(). Fails where the kernel has no membarrier(2), or a filter forbids it.
  Status begin();

  // Guards (guards.hpp) are waited for, too, from now on. Fails where the kernel cannot restart them. Once.
  Status begin_guards();
  // Every guard that is under way in another thread begins anew, and finds what the caller has written.
  static void restart_guards();

  // The calling thread's open scopes become those of nobody who runs, and are still open: adds to counts[parity]. And
  // they become its own, maybe in another thread; counts are 0 then.
  void take_scopes(Slot& slot, std::uint32_t* counts);
  void bring_scopes(Slot& slot, std::uint32_t* counts);

  // For the calling thread, one however often it asks, until as many calls of leave() give it to another. nullptr: no
  // memory.
  Slot* enter();
  void leave(Slot* slot);

  // A call of the runtime, which a fork waits for. Those of a thread may be nested.
  class Call {
   public:
    explicit Call(Grace& grace) : grace_(grace), slot_(t_own) {
      if (slot_ == nullptr) {
        grace_.begin_strangers_call();
        return;
      }
      const std::uint32_t before = slot_->inside.load(std::memory_order_relaxed);
      slot_->inside.store(before + 1, std::memory_order_relaxed);  // as in hl::far::detail::undivided
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (before == 0 && (slot_->phase.load(std::memory_order_relaxed) & Slot::kForking) != 0) [[unlikely]]
        grace_.wait_for_fork(slot_);
    }
    ~Call() {
      // release: pairs with begin_fork()
      if (slot_ != nullptr)
        slot_->inside.store(slot_->inside.load(std::memory_order_relaxed) - 1, std::memory_order_release);
      else
        grace_.end_strangers_call();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Grace& grace_;
    Slot* slot_;
  };
  // A scope of the runtime's own, for a moment: of the calling thread. Nothing where that has no slot.
  class Scope {
   public:
    Scope() : slot_(t_own) {
      if (slot_ == nullptr) return;
      parity_ = slot_->phase.load(std::memory_order_relaxed) & 1;
      // As in hl::far::scope.
      auto& active = slot_->active[parity_];
      active.store(active.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    ~Scope() {
      if (slot_ == nullptr) return;
      auto& active = slot_->active[parity_];
      active.store(active.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    explicit operator bool() const { return slot_ != nullptr; }

   private:
    Slot* slot_;
    std::uint32_t parity_ = 0;
  };

  static bool has_slot() { return t_own != nullptr; }
  // Within a Call: it is not in another one, nor in an undivided step, nor in a thread without a slot.
  static bool is_outermost_call() { return t_own != nullptr && t_own->inside.load(std::memory_order_relaxed) == 1; }
  // As hl::far::detail::runtime says.
  void wait_for_fork(Slot* slot);

  // --- fork, by the thread that forks: one at a time
  // From here on nobody else begins a call; returns when those under way have ended, which they do in bounded time.
  void begin_fork();
  // No thread comes or goes, and nothing of this class changes, from here to the end. Nobody is in wait().
  void lock_for_fork() { mutex_.lock(); }
  void end_fork_in_parent();
  // The other threads are not there, and neither are their scopes. The stacks that they had are memory of the C
  // library's from now on, which it gives to others, or unmaps: pointers that lay there are nobody's.
  struct Stack {
    std::uintptr_t begin, end;
  };
  std::vector<Stack> end_fork_in_child();

  // Every scope that was open when it was called has ended. False: `give_up` became true, or `limit_ns` has passed
  // (0: none). Not in a scope. One caller at a time gets through; others wait for it.
  bool wait(const std::atomic<bool>& give_up, std::uint64_t limit_ns = 0);

  // Threads that open their outermost scope call relieve() while this is set.
  void set_pressed(bool pressed);
  bool pressed() const { return pressed_.load(std::memory_order_relaxed); }

 private:
  struct Thread {
    Slot slot;
    Stack stack{0, 0};  // of the C library's own; of the first thread's, which stays where it is, nothing
    bool used = false;
  };
  // Of a thread that has no slot.
  void begin_strangers_call();
  void end_strangers_call();
  bool outside();
  bool drained(std::uint32_t parity);
  bool drain(std::uint32_t parity, const std::atomic<bool>& give_up, std::uint64_t end_ns);
  std::uint32_t phase_locked(const Slot& slot) const;
  void show_phase_locked();

  static thread_local Slot* t_own;
  static thread_local std::uint32_t t_own_users, t_strange_calls;

  // By parity: in the lower half, open scopes of those who run nowhere; in the upper half, how often that changed.
  std::atomic<std::uint64_t> away_[2] = {0, 0};
  static constexpr std::uint64_t kOneChange = std::uint64_t{1} << 32;

  Mutex waiting_;  // held by who waits
  Mutex mutex_;    // of what follows
  std::deque<Thread> threads_;
  std::vector<Thread*> unused_;
  std::uint32_t parity_ = 0;
  std::atomic<bool> pressed_{false};
  std::atomic<bool> has_guards_{false};
  const Slot* forking_ = nullptr;            // of who forks, while somebody does
  std::atomic<std::uint32_t> closed_{0};     // futex: somebody forks
  std::atomic<std::uint32_t> strangers_{0};  // calls under way
};

}  // namespace hinterland::object
