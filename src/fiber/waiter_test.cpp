// Waiting and waking where they meet: the wake that comes first, the time that comes first, the worker about to
// sleep.
#include "fiber/waiter.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/clock.hpp"
#include "fiber/scheduler.hpp"

namespace {

using namespace hl::fibers;
using hinterland::now_ns;
using hinterland::fiber::Waiter;

TEST(FiberWaiter, AWakeThatComesFirstIsKept) {
  auto check = [] {
    Waiter self;
    ASSERT_TRUE(self.claim());
    EXPECT_FALSE(self.claim());
    self.wake();
    EXPECT_TRUE(self.wait());
    Waiter timed;
    ASSERT_TRUE(timed.claim());
    timed.wake();
    EXPECT_TRUE(timed.wait(now_ns() + 1'000'000));
  };
  run({.workers = 1}, check);
  check();  // as a thread
}

TEST(FiberWaiter, ATimeThatIsPastEndsTheWait) {
  auto check = [] {
    Waiter self;
    EXPECT_FALSE(self.wait(1));
    EXPECT_FALSE(self.claim());
  };
  run({.workers = 1}, check);
  check();
}

// The only worker goes to sleep at the moment in which a thread wakes its fiber: one of both has to see the other.
TEST(FiberWaiter, AWorkerAboutToSleepSeesWhatComes) {
  constexpr int kRounds = 20'000;
  semaphore signal(0);
  std::atomic<int> received{0};
  std::thread outside([&] {
    std::uint64_t random = 1;
    for (int i = 0; i < kRounds; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      for (std::uint64_t pause = random >> 55; pause != 0; --pause) __builtin_ia32_pause();
      signal.release();
      for (int looks = 0; received.load() <= i; ++looks)
        if (looks > 10'000) std::this_thread::yield();  // there may be one CPU
    }
  });
  run({.workers = 1, .spin = std::chrono::microseconds(0)}, [&] {
    for (int i = 0; i < kRounds; ++i) {
      signal.acquire();
      received.store(i + 1);
    }
  });
  outside.join();
  EXPECT_EQ(received, kRounds);
}

}  // namespace
