#include "policy/proven_share.hpp"

#include <gtest/gtest.h>

namespace hinterland {
namespace {

constexpr std::uint64_t kHeld = 16'384;

// Many pages leave, and so many of a hundred of each part come back.
void let_leave(ProvenShare& share, int proven_that_return, int others_that_return, int pages = 100'000) {
  for (int page = 0; page < pages; ++page) {
    bool proven = page % 2 == 0;
    share.left(proven, kHeld);
    if (page / 2 % 100 < (proven ? proven_that_return : others_that_return)) share.came_back(proven);
  }
}

TEST(ProvenShareTest, TwoThirdsUntilSomethingIsKnown) {
  ProvenShare share;
  EXPECT_NEAR(static_cast<double>(share.room_beside(1000)), 2000, 100);
  let_leave(share, 0, 0);  // nothing comes back: nothing is known
  EXPECT_NEAR(static_cast<double>(share.room_beside(1000)), 2000, 100);
}

TEST(ProvenShareTest, MoreRoomWhereProvenPagesAreMissedMore) {
  ProvenShare share;
  let_leave(share, 90, 30);
  EXPECT_GT(share.room_beside(1000), 20'000u);  // a thirtieth stays for what is new
  EXPECT_LT(share.room_beside(1000), 40'000u);
}

TEST(ProvenShareTest, LessRoomWhereTheOthersAreMissedMore) {
  ProvenShare share;
  let_leave(share, 30, 90);
  EXPECT_NEAR(static_cast<double>(share.room_beside(1000)), 1000, 50);
  let_leave(share, 90, 30);  // and back again
  EXPECT_GT(share.room_beside(1000), 20'000u);
}

TEST(ProvenShareTest, WhatIsMissedNearlyAlikeMovesNothing) {
  ProvenShare share;
  let_leave(share, 55, 50);
  let_leave(share, 50, 55);
  EXPECT_NEAR(static_cast<double>(share.room_beside(1000)), 2000, 100);
}

// A part of which hardly anything leaves says nothing.
TEST(ProvenShareTest, FewDeparturesAreNoEvidence) {
  ProvenShare share;
  for (int page = 0; page < 100'000; ++page) {
    bool proven = page % 100'000 == 0;
    share.left(proven, kHeld);
    if (proven) share.came_back(proven);
  }
  EXPECT_NEAR(static_cast<double>(share.room_beside(1000)), 2000, 100);
}

TEST(ProvenShareTest, WithinATurnItCrossesItsRange) {
  ProvenShare share;
  let_leave(share, 90, 30, kHeld);
  EXPECT_GT(share.room_beside(1000), 20'000u);
}

TEST(ProvenShareTest, NothingHeldDividesByNothing) {
  ProvenShare share;
  let_leave(share, 100, 0);
  EXPECT_GT(share.room_beside(0), 0u);
  EXPECT_EQ(share.room_beside(0), ProvenShare{}.room_beside(0));
}

}  // namespace
}  // namespace hinterland
