// Whatever share is kept, what is kept stands for all.
#include "trace/thinning.hpp"

#include <gtest/gtest.h>

namespace hinterland::trace {
namespace {

TEST(Thinning, KeepsEachOfAWholeShare) {
  Thinning thinning;
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(thinning.faults_of_next(1), 1u);
}

TEST(Thinning, RoundingLosesNoFault) {
  Thinning thinning;
  std::uint64_t sum = 0;
  for (int i = 0; i < 3000; ++i) sum += thinning.faults_of_next(221.0 / 30);
  EXPECT_NEAR(static_cast<double>(sum), 22'100, 1);
}

// The share changes with each batch, as the recorder sets it: the sum stays right to within the widest sample.
TEST(Thinning, TheSumIsThatOfAllSamples) {
  Thinning thinning;
  std::uint64_t sum = 0, kept = 0;
  for (int i = 0; i < 100'000; ++i) {
    if (i % 100 == 0) thinning.set_share(i % 300 == 0 ? 0.013 : 0.31);
    std::uint64_t faults = thinning.faults_of_next(7);
    sum += faults;
    kept += faults != 0;
  }
  EXPECT_NEAR(static_cast<double>(sum), 700'000, 700'000 * 0.02);
  EXPECT_NEAR(static_cast<double>(kept), 100'000 * (0.013 + 2 * 0.31) / 3, 600);  // some stand for two
}

// Ten places in turn, one sample in ten kept: each is met as often as the others.
TEST(Thinning, ACycleIsNotCaughtAtOnePlace) {
  Thinning thinning;
  thinning.set_share(0.1);
  std::uint64_t of_place[10] = {};
  for (int i = 0; i < 100'000; ++i) of_place[i % 10] += thinning.faults_of_next(1);
  for (std::uint64_t faults : of_place) EXPECT_NEAR(static_cast<double>(faults), 10'000, 1500);
}

}  // namespace
}  // namespace hinterland::trace
