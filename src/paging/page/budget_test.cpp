#include "paging/page/budget.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/clock.hpp"

namespace hinterland {
namespace {

TEST(BudgetTest, CountsAndRoom) {
  Budget budget;
  budget.set_limit(1000 * kPageSize);
  budget.add(990);
  EXPECT_EQ(budget.local(), 990);
  EXPECT_EQ(budget.free(), 10);
  EXPECT_TRUE(budget.has_room(10));
  EXPECT_FALSE(budget.has_room(11));
  budget.subtract(90);
  EXPECT_EQ(budget.free(), 100);
  budget.set_limit(800 * kPageSize);
  EXPECT_EQ(budget.free(), -100);
  budget.reset_local(3);
  EXPECT_EQ(budget.local(), 3);
}

TEST(BudgetTest, WatermarksFollowTheLimitWithinBounds) {
  struct Case {
    std::int64_t limit, start, stop, park;
  };
  for (Case c : {Case{96, 16, 32, 32}, Case{3200, 25, 50, 200}, Case{1 << 20, 4096, 8192, 16384}}) {
    Budget budget;
    budget.set_limit(bytes_of_pages(static_cast<std::size_t>(c.limit)));
    budget.reset_local(c.limit - c.start);
    EXPECT_FALSE(budget.should_start()) << c.limit;
    budget.add(1);
    EXPECT_TRUE(budget.should_start()) << c.limit;
    budget.reset_local(c.limit - c.stop);
    EXPECT_TRUE(budget.should_stop()) << c.limit;
    budget.add(1);
    EXPECT_FALSE(budget.should_stop()) << c.limit;
    EXPECT_EQ(budget.pages_until_stop(), 1) << c.limit;
    EXPECT_EQ(100'000 - budget.frames_to_expire(100'000), c.park) << c.limit;
  }
}

// A call that comes while the reclaimer has looked at the budget and is about to sleep.
TEST(BudgetTest, NoCallOfTheReclaimerIsLost) {
  constexpr int kRounds = 100'000;
  constexpr std::uint64_t kTooLongNs = 20'000'000'000;
  Budget budget;
  budget.set_limit(bytes_of_pages(1000));
  std::atomic<int> round{0};
  auto linger = [](int pauses) {
    for (int i = 0; i < pauses; ++i) __builtin_ia32_pause();
  };
  std::thread caller([&] {
    for (int seen = 0; seen < kRounds; ++seen) {
      for (int looks = 0; round.load() == seen; ++looks)
        if (looks > 10'000) std::this_thread::yield();
      linger(seen % 59);
      budget.add(1000);
      budget.wake_reclaimer();
    }
  });
  int lost = 0;
  for (int i = 0; i < kRounds; ++i) {
    std::uint64_t started = now_ns();
    round.store(i + 1);
    linger(i % 61);
    while (!budget.should_start()) budget.sleep_until_woken(lost == 0 ? kTooLongNs : 1'000'000);
    lost += now_ns() - started >= kTooLongNs;
    budget.subtract(1000);
  }
  caller.join();
  EXPECT_EQ(lost, 0);
}

TEST(BudgetTest, MoreIsKeptInHandWhereItWasUsedUp) {
  Budget budget, fixed;
  fixed.keep_the_usual_in_hand();
  for (Budget* each : {&budget, &fixed}) {
    each->set_limit(bytes_of_pages(12800));
    each->reset_local(12800 - 150);
    each->note_reclaimed(25);  // a quarter of the low watermark, 100
    EXPECT_FALSE(each->should_start());
    each->note_reclaimed(24);
  }
  EXPECT_TRUE(budget.should_start());
  EXPECT_EQ(budget.pages_until_stop(), 400 - 150);
  EXPECT_FALSE(fixed.should_start());
  budget.note_reclaimed(0);  // no more than twice
  EXPECT_EQ(budget.pages_until_stop(), 400 - 150);

  budget.set_limit(bytes_of_pages(25600));  // `hinterland tune`
  budget.reset_local(25600 - 300);
  EXPECT_TRUE(budget.should_start());
  for (int calm = 0; calm < 63; ++calm) budget.note_reclaimed(301);
  EXPECT_TRUE(budget.should_start());
  budget.note_reclaimed(301);
  EXPECT_FALSE(budget.should_start());
}

TEST(BudgetTest, FewFramesAreKeptWhereThatSavesNoFetch) {
  Budget budget;
  budget.set_limit(bytes_of_pages(6400));
  EXPECT_EQ(100'000 - budget.frames_to_expire(100'000), 400u);
  budget.park_few();
  EXPECT_EQ(100'000 - budget.frames_to_expire(100'000), 100u);
  budget.park_nothing();
  EXPECT_EQ(100'000 - budget.frames_to_expire(100'000), 0u);
}

TEST(BudgetTest, TheReclaimerSleepsUntilItIsWoken) {
  Budget budget;
  budget.set_limit(1000 * kPageSize);
  EXPECT_FALSE(budget.wake_reclaimer());  // nobody sleeps: nothing happens
  std::uint64_t started = now_ns();
  budget.sleep_until_woken(20'000'000);
  EXPECT_GE(now_ns() - started, 15'000'000u);
  std::atomic<bool> awake{false};
  std::thread reclaimer([&] {
    budget.sleep_until_woken(0);
    awake = true;
  });
  while (!awake) budget.wake_reclaimer();  // the first ones may come before it sleeps
  reclaimer.join();
}

TEST(BudgetTest, WhoLeavesItToOthersSleepsAlthoughItIsShort) {
  Budget budget;
  budget.set_limit(1000 * kPageSize);
  budget.add(1000);
  std::uint64_t started = now_ns();
  budget.sleep_until_woken(20'000'000, true);
  EXPECT_GE(now_ns() - started, 15'000'000u);
  std::atomic<bool> awake{false};
  std::thread reclaimer([&] {
    budget.sleep_until_woken(0, true);
    awake = true;
  });
  while (!awake) budget.wake_reclaimer();
  reclaimer.join();
}

TEST(BudgetTest, WhoIsShortDoesNotSleep) {
  Budget budget;
  budget.set_limit(1000 * kPageSize);
  budget.add(1000);
  budget.sleep_until_woken(0);  // would never return
  SUCCEED();
}

}  // namespace
}  // namespace hinterland
