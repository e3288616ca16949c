// Where the fault handler runs, and how it makes way for the thread that it wakes.
//
// A miss is cheapest when the handler and the faulting thread share a CPU and take turns on it: waking a thread on a
// CPU that sleeps costs ten times as much as the rest (ADR 0002). Two things keep them apart, and this prevents
// both. The program's thread moves: then the handler follows it. And the scheduler puts a thread that is woken on an
// idle CPU when the one that it came from is taken, which it is, by the handler that wakes it. Unless the handler
// runs under SCHED_IDLE: such a CPU counts as free, and the woken thread runs at once.
//
// A handler under SCHED_IDLE may starve. So it makes way only while nearly all faults come from one thread (those of
// others wait until that thread waits), and a watchdog takes that back as soon as the handler wants to run and does
// not get to. (docs/adr/0012-the-handler-makes-way.md)
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "kernel/proc_file.hpp"
#include "paging/place/attendance.hpp"
#include "paging/place/attraction.hpp"
#include "paging/place/companions.hpp"
#include "paging/place/program_threads.hpp"

namespace hinterland {

// Decides when the handler should move to another CPU: when nearly all recent faults came from there.
class FollowCpu {
 public:
  // Moving costs about as much as one fault served from afar (60 us). Faults of several threads come from several
  // CPUs in turn; those of one thread come from where it is.
  static constexpr int kFaults = 6, kFaultsOfOne = 2;

  // A fault came from `cpu` while the handler runs on `own`. Returns the CPU to move to, after so many, or -1.
  int on_fault(int cpu, int own, int faults) {
    if (cpu < 0 || cpu == own) {
      away_ = away_ > 0 ? away_ - 1 : 0;
      return -1;
    }
    if (cpu != candidate_) {
      candidate_ = cpu;
      away_ = 1;
      return -1;
    }
    if (++away_ < faults) return -1;
    away_ = 0;
    return candidate_;
  }

 private:
  int candidate_ = -1;
  int away_ = 0;
};

// Decides when the handler makes way: after a streak of faults by one thread, and for as long as others have fewer
// than a third of the faults. The streak that it takes grows when making way went wrong, and is small again after a
// long time that went well.
class LoneFaulter {
 public:
  static constexpr std::uint32_t kStreakMin = 32, kStreakMax = 1 << 20, kGoodStreak = 1 << 16;

  // True while nearly all faults are one thread's, and have been for long enough.
  bool on_fault(std::uint32_t thread_id) {
    if (thread_id == thread_id_)
      on_own();
    else if (score_ > kStrangerCosts)
      score_ -= kStrangerCosts;
    else
      begin(thread_id);
    if (lone_ && score_ < kScoreToStay) begin(thread_id_);
    std::uint32_t needed = needed_.load(std::memory_order_relaxed);
    if (needed > needed_before_) begin(thread_id_);  // it went wrong
    needed_before_ = needed;
    lone_ = lone_ || (thread_id_ != 0 && score_ >= kStreakMin && streak_ >= needed);
    return lone_;
  }
  // The one thread, while there is one.
  std::uint32_t thread_id() const { return thread_id_; }
  // Any thread.
  void went_wrong() {
    std::uint32_t needed = needed_.load(std::memory_order_relaxed);
    needed_.store(needed < kStreakMax / 8 ? needed * 8 : kStreakMax, std::memory_order_relaxed);
  }

 private:
  // From the highest score it takes 25 strangers in a row to end it.
  static constexpr std::uint32_t kScoreMax = 2 * kStreakMin, kScoreToStay = kStreakMin / 2, kStrangerCosts = 2;

  void begin(std::uint32_t thread_id) {
    thread_id_ = thread_id;
    score_ = streak_ = 1;
    lone_ = false;
  }
  void on_own() {
    if (score_ < kScoreMax) ++score_;
    if (++streak_ == kGoodStreak) needed_.store(kStreakMin, std::memory_order_relaxed);
  }

  std::uint32_t thread_id_ = 0;
  std::uint32_t score_ = 0;   // how much it is this thread that faults, of late
  std::uint32_t streak_ = 0;  // its faults since it became the one
  bool lone_ = false;
  std::uint32_t needed_before_ = kStreakMin;
  std::atomic<std::uint32_t> needed_{kStreakMin};  // relaxed: only steers
};

// Which handler it is, and what it shares with the others. All borrowed for the life of the process.
struct HandlerPlace {
  ProgramThreads& threads;
  Attendance& attendance;
  Companions& companions;
  unsigned handler = 0;  // 0: the one that is always there
};

class HandlerPlacement {
 public:
  static constexpr std::uint64_t kNotWatched = ~0ull;

  explicit HandlerPlacement(const HandlerPlace& place)
      : threads_(place.threads),
        attendance_(place.attendance),
        companions_(place.companions),
        handler_(place.handler) {}

  // Before the handler's thread starts: whoever calls watch(), and how to wake it.
  void set_watchdog(void (*wake)()) { wake_watchdog_ = wake; }

  // --- the handler's thread
  void start();
  void on_fault(std::uint32_t faulting_thread_id);
  void served() { advance(1); }
  // A spare handler goes to the thread's CPU and makes way there. False when it cannot.
  bool go_to(std::uint32_t thread_id);
  void go_back() { stop_making_way(); }
  // It looked for faults, and there were none: it does not starve.
  void looked() { advance(2); }
  // May it wake a helper, or would that draw the thread away? And: it did.
  bool may_wake_helper() { return helper_attraction_.may_wake(); }
  void woke_helper() { helper_attraction_.woke(); }
  bool may_wake_reclaimer() { return reclaimer_attraction_.may_wake(); }
  void woke_reclaimer() { reclaimer_attraction_.woke(); }

  // --- the watchdog's thread
  // Takes the making way back when the handler starves, or has had nothing to do. Returns in how many ns it must be
  // called again; kNotWatched while the handler does not make way (it wakes the watchdog when it does).
  std::uint64_t watch();

  bool makes_way() const { return makes_way_.load(std::memory_order_relaxed); }

 private:
  void advance(std::uint32_t by) {
    progress_.store(progress_.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  bool thread_waits() const;
  void note_stranger(std::uint32_t thread_id);
  void make_way();
  void stop_making_way();
  void move_to(int cpu);

  ProgramThreads& threads_;
  Attendance& attendance_;
  Companions& companions_;
  const unsigned handler_;
  void (*wake_watchdog_)() = nullptr;
  bool permitted_ = false;  // the handler's thread only, as all without a remark
  bool started_ = false;
  // Whom it served last, or, a spare handler, is with. Relaxed: the watchdog only steers by it.
  std::atomic<std::uint32_t> thread_id_{0};
  std::uint32_t strangers_ = 0;  // faults of others since the last one that called a handler
  FollowCpu follow_;
  Attraction helper_attraction_, reclaimer_attraction_;
  LoneFaulter lone_;
  ProcFile state_;                          // of its thread
  pid_t handler_id_ = 0;                    // written before makes_way_ becomes true
  std::atomic<int> cpu_{-1};                // where it makes way. Relaxed: only steers
  std::atomic<bool> makes_way_{false};      // who changes it from true to false undoes it
  std::atomic<std::uint32_t> progress_{0};  // odd: a fault is being served. Relaxed: compared with itself only
  bool watched_before_ = false;             // the watchdog's, as the rest
  std::uint32_t progress_seen_ = 0;
  std::uint64_t looked_at_ns_ = 0;
  unsigned quiet_ticks_ = 0;
};

}  // namespace hinterland
