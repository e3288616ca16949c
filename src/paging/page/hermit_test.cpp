// Hermit's rules, against what its paper and its source say.
#include "paging/page/hermit.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace hinterland {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

// Rates that make the rule want so many threads at most.
class Scheduled {
 public:
  explicit Scheduled(std::uint64_t intensity, unsigned threads = HermitSchedule::kThreadsMax) {
    schedule.set_threads(threads);
    schedule.look(1 * kMs, 0, 0, {});
    schedule.look(2 * kMs, intensity * 100 + 50, 0, {});
    schedule.note_reclaimed(100, kMs);
  }
  HermitSchedule schedule;
};

TEST(HermitScheduleTest, FastswapsRuleUntilBothRatesAreKnown) {
  HermitSchedule schedule;
  EXPECT_EQ(schedule.threads(2048), 0u);
  EXPECT_EQ(schedule.threads(2047), 1u);
  schedule.note_reclaimed(64, kMs);
  EXPECT_EQ(schedule.threads(2047), 1u);
  EXPECT_EQ(schedule.threads(-5), 1u);
}

TEST(HermitScheduleTest, ThreePhases) {
  Scheduled four(4);
  HermitSchedule& schedule = four.schedule;
  EXPECT_EQ(schedule.threads(4 * 128 * 16 + 1), 0u);
  EXPECT_EQ(schedule.low_mark(), 4 * 128 * 16);
  EXPECT_EQ(schedule.threads(4 * 128 * 16), 1u);
  EXPECT_EQ(schedule.threads(4 * 128), 1u);
  EXPECT_EQ(schedule.threads(4 * 128 - 2 * 128), 2u);
  EXPECT_EQ(schedule.threads(127), 3u);
  EXPECT_EQ(schedule.threads(0), 4u);
  EXPECT_EQ(schedule.threads(-128), 5u);  // beyond what the intensity says, as published
  EXPECT_EQ(schedule.threads(-1'000'000), HermitSchedule::kThreadsMax);
}

// One thread that frees pages faster than they come is quotient 0: nothing is kept free.
TEST(HermitScheduleTest, WhereOneThreadIsFasterNothingIsKeptFree) {
  Scheduled none(0);
  EXPECT_EQ(none.schedule.threads(1), 0u);
  EXPECT_EQ(none.schedule.threads(0), 1u);
  EXPECT_EQ(none.schedule.threads(-1), 1u);
}

TEST(HermitScheduleTest, NoMoreThreadsThanThereAre) {
  Scheduled two(100, 2);
  EXPECT_EQ(two.schedule.threads(0), 2u);
  EXPECT_EQ(two.schedule.threads(-1'000'000), 2u);
  EXPECT_EQ(two.schedule.low_mark(), 2 * 128 * 16);
}

TEST(HermitScheduleTest, TheSwapInRateNeverFalls) {
  HermitSchedule schedule;
  EXPECT_TRUE(schedule.wants_look(1));
  schedule.look(10 * kMs, 500, 0, {});
  EXPECT_EQ(schedule.swap_in_rate(), 0u);
  EXPECT_FALSE(schedule.wants_look(11 * kMs - 1));
  EXPECT_TRUE(schedule.wants_look(11 * kMs));
  schedule.look(11 * kMs, 600, 0, {});
  EXPECT_EQ(schedule.swap_in_rate(), 100'000u);
  schedule.look(21 * kMs, 601, 0, {});
  EXPECT_EQ(schedule.swap_in_rate(), 100'000u);
  schedule.look(22 * kMs, 801, 0, {});
  EXPECT_EQ(schedule.swap_in_rate(), 200'000u);
}

TEST(HermitScheduleTest, TheLowMarkGrowsWhilePagesStayAwayAsLong) {
  Scheduled none(0);
  HermitSchedule& schedule = none.schedule;
  schedule.look(3 * kMs, 60, 200'000, 1000);
  EXPECT_EQ(schedule.low_mark(), 100);
  schedule.look(4 * kMs, 60, 200'000, 1000);
  EXPECT_EQ(schedule.low_mark(), 200);
  schedule.look(5 * kMs, 60, 200'000, {});  // nothing came back: nothing is known
  EXPECT_EQ(schedule.low_mark(), 200);
  EXPECT_EQ(schedule.threads(200), 1u);
  EXPECT_EQ(schedule.threads(201), 0u);
  schedule.look(6 * kMs, 60, 200'000, 999);
  EXPECT_EQ(schedule.low_mark(), 0);
  EXPECT_EQ(schedule.threads(1), 0u);
  schedule.look(7 * kMs, 60, 200'000, 999);
  EXPECT_EQ(schedule.low_mark(), 100);
}

TEST(RefaultDistancesTest, CountWhatLeftBetween) {
  RefaultDistances distances;
  ASSERT_TRUE(distances.create(1000));
  EXPECT_FALSE(distances.take_mean().has_value());
  for (std::uint32_t page = 0; page < 100; ++page) distances.left({page});
  distances.came({500}, 0);  // never left
  EXPECT_FALSE(distances.take_mean().has_value());
  distances.came({0}, 0);
  EXPECT_EQ(distances.take_mean(), 100u);
  distances.came({0}, 0);  // once
  EXPECT_FALSE(distances.take_mean().has_value());
  distances.came({99}, 0);
  distances.came({90}, 0);
  EXPECT_EQ(distances.take_mean(), (1u + 10u) / 2);
  distances.came({98}, 2);  // in use, for fewer have left than there are: it ages the others
  distances.came({97}, 0);
  EXPECT_EQ(distances.take_mean(), (2u + 4u) / 2);
}

TEST(SpeculativeReadsTest, GoOffWhereMoreThanOneInAHundredFailsAndAreTriedAgain) {
  SpeculativeReads reads;
  for (std::uint64_t i = 0; i <= SpeculativeReads::kTrials; ++i) {
    ASSERT_TRUE(reads.next()) << i;
    if (i < SpeculativeReads::kTrials / SpeculativeReads::kFailedOf) reads.note_failed();  // just one in a hundred
  }
  std::uint64_t asked = SpeculativeReads::kTrials + 1;
  for (std::uint64_t i = 0; i < SpeculativeReads::kTrials; ++i) {
    ASSERT_TRUE(reads.next()) << i;
    if (i <= SpeculativeReads::kTrials / SpeculativeReads::kFailedOf) reads.note_failed();
  }
  asked += SpeculativeReads::kTrials;
  for (; asked < SpeculativeReads::kUntilNext; ++asked) ASSERT_FALSE(reads.next()) << asked;
  EXPECT_TRUE(reads.next());
  EXPECT_TRUE(reads.next());
}

class HermitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    budget.set_limit(bytes_of_pages(10'000));
    ASSERT_TRUE(hermit.create(budget, 20'000, 2));
  }
  Budget budget;
  Hermit hermit;
};

TEST_F(HermitTest, EveryArrivalAsksAndNothingIsKeptFreeOtherwise) {
  EXPECT_TRUE(budget.should_start());
  EXPECT_TRUE(budget.should_stop());
  EXPECT_EQ(budget.charged(), 0u);
  budget.add(7000);
  budget.subtract(3000);
  budget.add(10);
  EXPECT_EQ(budget.charged(), 7010u);
  budget.set_limit(bytes_of_pages(5000));
  EXPECT_TRUE(budget.should_start());
  EXPECT_EQ(hermit.kept_in_hand(), 0);
}

TEST_F(HermitTest, CallsAThreadThatReclaimsUntilNothingIsWanted) {
  budget.add(9'000);
  std::atomic<int> rounds{0};
  std::thread reclaimer([&] {
    hermit.wait_for_call(0);
    for (; hermit.is_wanted(0); ++rounds) budget.subtract(64);
  });
  hermit.charged();  // 1000 are free, less than 2048, and no rate is known
  reclaimer.join();
  EXPECT_EQ(rounds, (1048 + 63) / 64);
  EXPECT_FALSE(hermit.is_wanted(0));
  EXPECT_FALSE(hermit.is_wanted(1));
}

TEST_F(HermitTest, AChildStartsWithoutCallsAndLocks) {
  budget.add(9'000);
  hermit.charged();
  hermit.after_fork_in_child();
  std::atomic<bool> called{false};
  std::thread reclaimer([&] {
    hermit.wait_for_call(0);
    called = true;
  });
  std::this_thread::yield();
  hermit.charged();
  reclaimer.join();
  EXPECT_TRUE(called);
}

}  // namespace
}  // namespace hinterland
