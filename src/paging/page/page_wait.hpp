// How a thread waits for a page that another has in its hands, or for what takes as short a time.
#pragma once

#include <sched.h>

#include <ctime>

namespace hinterland {

// A mover keeps a page for microseconds, or for one request of a slow device. Often it is runnable and has no CPU:
// who maps a page wakes the thread that waited for it, and that thread runs at once in its place. Then nothing helps
// but to let it run: munmap of a page just touched took 113 to 153 us with a sleep of 20 us, and 17 with a yield
// (three runs each, two virtual CPUs).
class PageWait {
 public:
  // After each look that found the page busy. errno may change; it is a cancellation point once spins() is over.
  void again() {
    const unsigned tries = tries_++;
    if (tries < kSpins)
      __builtin_ia32_pause();
    else if (tries < kYields)
      sched_yield();
    else
      nap(tries < kShortNaps ? 20'000 : 500'000);
  }
  bool spins() const { return tries_ < kSpins; }

 private:
  static constexpr unsigned kSpins = 64, kYields = kSpins + 64, kShortNaps = kYields + 800;

  static void nap(long ns) {
    const timespec time{0, ns};
    nanosleep(&time, nullptr);
  }

  unsigned tries_ = 0;
};

}  // namespace hinterland
