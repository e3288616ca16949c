// Which fault handler is with which thread of the program, where several threads fault at the same time
// (docs/adr/0017-a-handler-for-each-faulting-thread.md).
//
// Handler 0 is there from the start and serves whatever comes. The others are spare: one sleeps until it is called to
// a thread that often faults while handler 0 is busy with another, and goes back to sleep when that thread is quiet.
// A handler that meets a fault of a thread which another handler is with serves it and thinks no more of it.
//
// Lock-free but for call(); all orders are relaxed unless said otherwise, because who serves a fault never matters
// for its result.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/mutex.hpp"

namespace hinterland {

class Attendance {
 public:
  static constexpr unsigned kHandlersMax = 4;

  // How many spare handlers may be called, and how whoever starts their threads is woken (any thread, no locks).
  void allow_spares(unsigned spares, void (*wake_starter)()) {
    wake_starter_ = wake_starter;
    spares_.store(spares < kHandlersMax ? spares : kHandlersMax - 1, std::memory_order_relaxed);
  }

  bool by_another(std::uint32_t thread_id, unsigned handler) const {
    for (unsigned other = 0; other < kHandlersMax; ++other)
      if (other != handler && places_[other].load(std::memory_order_relaxed) == thread_id) return true;
    return false;
  }
  bool alone() const { return called_.load(std::memory_order_relaxed) == 0; }

  // --- handlers
  // With which thread handler 0 is.
  void attend(unsigned handler, std::uint32_t thread_id) {
    if (places_[handler].load(std::memory_order_relaxed) != thread_id)
      places_[handler].store(thread_id, std::memory_order_relaxed);
  }
  // Faults of other threads that it takes until one of them gets a handler of its own.
  std::uint32_t patience() const { return patience_.load(std::memory_order_relaxed); }
  // Asks a spare handler to go to the thread. Never blocks.
  void call(std::uint32_t thread_id);

  // --- spare handlers
  // Sleeps until called; returns the thread.
  std::uint32_t wait_for_call(unsigned handler);
  // Back to sleep; `served`: faults since the call. Few of them, and the next call takes more patience.
  void leave(unsigned handler, std::uint64_t served);

  // --- whoever starts the spare handlers' threads
  bool is_called(unsigned handler) const { return places_[handler].load(std::memory_order_relaxed) != 0; }

  // In a forked child, where only handler 0 exists.
  void after_fork_in_child();

 private:
  static constexpr std::uint32_t kPatienceMin = 16, kPatienceMax = 1 << 16;
  static constexpr std::uint64_t kWorthIt = 1024;  // faults that pay for a call: some 50 us, and a thread moved

  std::array<std::atomic<std::uint32_t>, kHandlersMax> places_{};  // thread ids; futexes of the spare handlers
  std::atomic<unsigned> spares_{0};
  std::atomic<unsigned> called_{0};
  std::atomic<std::uint32_t> patience_{kPatienceMin};
  void (*wake_starter_)() = nullptr;  // written before spares_, by allow_spares()
  Mutex calling_;
};

}  // namespace hinterland
