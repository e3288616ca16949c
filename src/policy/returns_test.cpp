#include "policy/returns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace hinterland {
namespace {

constexpr unsigned kKind = 3, kOther = 5;

std::unique_ptr<Returns> made() {
  auto returns = std::make_unique<Returns>();
  returns->start();
  return returns;
}
// Which comes first, the one that is worth less.
bool cheaper(const Returns& returns, unsigned one, unsigned other) {
  const auto& order = returns.cheapest_first();
  return std::ranges::find(order, one) < std::ranges::find(order, other);
}
unsigned young(unsigned kind) { return ReturnLists::list_of(kind, 0); }

// So many pages leave from the list at each tick, and so many of them are back after `away` ticks.
void run(Returns& returns, unsigned list, int leave, int back, std::uint32_t away, std::uint32_t ticks = 400) {
  for (std::uint32_t tick = 1; tick <= ticks; ++tick) {
    returns.next_tick(tick);
    for (int i = 0; i < leave; ++i) returns.left(tick, list);
    for (int i = 0; i < back && tick > away; ++i) returns.came_back(list, away);
  }
}

TEST(ReturnsTest, AgesCoverAllTicks) {
  EXPECT_EQ(ReturnLists::age_of(0), 0u);
  EXPECT_EQ(ReturnLists::age_of(3), 0u);
  EXPECT_EQ(ReturnLists::age_of(4), 1u);
  EXPECT_EQ(ReturnLists::age_of(255), 7u);
  EXPECT_EQ(ReturnLists::age_of(1'000'000), ReturnLists::kAges - 1);
  EXPECT_EQ(ReturnLists::kind_of(ReturnLists::list_of(kKind, 4)), kKind);
}

TEST(ReturnsTest, WithoutEvidenceTheOldestAreWorthLeast) {
  auto returns = made();
  const auto& order = returns->cheapest_first();
  for (std::size_t i = 0; i < ReturnLists::kKinds; ++i)
    EXPECT_EQ(order[i] % ReturnLists::kAges, ReturnLists::kAges - 1);
}

TEST(ReturnsTest, WhatNeverComesBackIsWorthLess) {
  auto returns = made();
  run(*returns, young(kKind), 10, 0, 2);
  EXPECT_TRUE(cheaper(*returns, young(kKind), young(kOther)));
}

TEST(ReturnsTest, WhatComesBackIsWorthMoreTheSoonerItDoes) {
  auto both = made();
  for (std::uint32_t tick = 1; tick <= 400; ++tick) {
    both->next_tick(tick);
    for (int i = 0; i < 10; ++i) {
      both->left(tick, young(kKind));
      both->left(tick, young(kOther));
      if (i != 0 && tick > 2) both->came_back(young(kKind), 2);
      if (i != 0 && tick > 200) both->came_back(young(kOther), 200);
    }
  }
  EXPECT_TRUE(cheaper(*both, young(kOther), young(kKind)));
}

TEST(ReturnsTest, ThePastIsForgotten) {
  auto returns = made();
  run(*returns, young(kKind), 10, 9, 2);
  run(*returns, young(kKind), 10, 0, 2, 1000);
  EXPECT_TRUE(cheaper(*returns, young(kKind), young(kOther)));
}

TEST(ReturnsTest, AListWithoutEvidenceIsBelievedToBeAsItsKind) {
  auto returns = made();
  run(*returns, ReturnLists::list_of(kKind, 2), 10, 9, 2);
  EXPECT_TRUE(cheaper(*returns, young(kOther), young(kKind)));
}

TEST(ReturnsTest, WhatDidNotLeaveAfterAllIsNotCounted) {
  auto returns = made(), untouched = made();
  for (std::uint32_t tick = 1; tick <= 400; ++tick) {
    returns->next_tick(tick);
    untouched->next_tick(tick);
    returns->left(tick, young(kKind));
    returns->did_not_leave(tick, young(kKind));
  }
  EXPECT_EQ(returns->cheapest_first(), untouched->cheapest_first());
}

}  // namespace
}  // namespace hinterland
