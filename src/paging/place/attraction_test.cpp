#include "paging/place/attraction.hpp"

#include <gtest/gtest.h>

namespace hinterland {
namespace {

// One wake-up, if it is allowed, and faults after it, of which the one numbered `away` comes from another CPU (none:
// -1).
bool wake(Attraction& attraction, int away) {
  bool woke = attraction.may_wake();
  if (woke) attraction.woke();
  for (int i = 0; i < 32; ++i) attraction.on_fault(woke && i == away);
  return woke;
}

int wakes_of(Attraction& attraction, int opportunities, int away) {
  int wakes = 0;
  for (int i = 0; i < opportunities; ++i) wakes += wake(attraction, away);
  return wakes;
}

TEST(AttractionTest, HelpersThatDisturbNobodyAreWoken) {
  Attraction attraction;
  EXPECT_EQ(wakes_of(attraction, 1000, -1), 1000);
}

TEST(AttractionTest, HelpersThatDrawTheThreadAwayAreLeftAsleepButForATryNowAndThen) {
  Attraction attraction;
  int wakes = wakes_of(attraction, 64 * 100, 1);
  EXPECT_GE(wakes, 100);
  EXPECT_LE(wakes, 110);
}

TEST(AttractionTest, OneInTenIsNoReason) {
  Attraction attraction;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(wake(attraction, i % 10 == 0 ? 1 : -1)) << i;
}

TEST(AttractionTest, AThreadThatMovesMuchLaterDidSoForOtherReasons) {
  Attraction attraction;
  EXPECT_EQ(wakes_of(attraction, 1000, Attraction::kFaultsAfter), 1000);
}

TEST(AttractionTest, AThreadThatWasAwayBeforeTellsNothing) {
  Attraction attraction;
  for (int i = 0; i < 1000; ++i) {
    attraction.on_fault(true);
    EXPECT_TRUE(attraction.may_wake());
    attraction.woke();
    attraction.on_fault(true);
  }
}

TEST(AttractionTest, FindsOutThatItIsOver) {
  Attraction attraction;
  wakes_of(attraction, 1000, 1);
  wakes_of(attraction, 64 * 20, -1);
  EXPECT_EQ(wakes_of(attraction, 100, -1), 100);
}

}  // namespace
}  // namespace hinterland
