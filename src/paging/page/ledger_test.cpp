// Pages and clients as a model: each works on some memory at random, and waits for what is far.
#include "paging/page/ledger.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>

#include "base/units.hpp"

namespace hinterland {
namespace {

constexpr std::uint64_t kBudget = 256 * kMiB, kLook = 20'000'000;

// What a holder of local memory does between two looks.
struct Holder {
  std::uint64_t works_on = 0;     // bytes, all alike
  double accesses_ns = 0;         // what it would wait in a second if all of it were far
  double gives_up_at_a_look = 1;  // of what is too much
  std::uint64_t limit = kBudget / 2, used = 0, waited = 0;

  void work() {
    if (used > limit) used -= static_cast<std::uint64_t>(static_cast<double>(used - limit) * gives_up_at_a_look);
    if (works_on == 0 || accesses_ns == 0) return;
    if (used < limit) used = std::min(limit, works_on);
    double far = 1 - std::min(1.0, static_cast<double>(used) / static_cast<double>(works_on));
    waited += static_cast<std::uint64_t>(accesses_ns * far * kLook / 1e9);
  }
};

struct Client final : LedgerClient {
  Holder holder;
  std::uint64_t limit_bytes() const override { return holder.limit; }
  std::uint64_t used_bytes() const override { return holder.used; }
  std::uint64_t waited_ns() const override { return holder.waited; }
  void set_limit(std::uint64_t bytes) override { holder.limit = bytes; }
};

class LedgerTest : public testing::Test {
 protected:
  LedgerTest() { EXPECT_TRUE(ledger.join(objects)); }

  void look() {
    pages.work();
    objects.holder.work();
    now += kLook;
    pages.limit = ledger.share_out(budget, {pages.limit, pages.used, pages.waited}, now);
  }
  void look_often(int times = 150) {
    for (int i = 0; i < times; ++i) {
      look();
      ASSERT_LE(std::max(pages.limit, pages.used) + std::max(objects.holder.limit, objects.holder.used), budget)
          << "look " << i;
    }
  }

  Ledger ledger;
  Client objects;
  Holder pages;
  std::uint64_t now = 1, budget = kBudget;
};

TEST_F(LedgerTest, MemoryFollowsWhoWaits) {
  for (Holder* holder : {&pages, &objects.holder}) holder->works_on = 300 * kMiB;
  for (int phase = 0; phase < 4; ++phase) {
    Holder& works = phase % 2 == 0 ? pages : objects.holder;
    Holder& rests = phase % 2 == 0 ? objects.holder : pages;
    works.accesses_ns = 1e9;
    rests.accesses_ns = 0;
    look_often();
    EXPECT_GE(works.limit, budget * 7 / 8) << "phase " << phase;
    EXPECT_GE(rests.limit, budget / 16) << "phase " << phase;
    EXPECT_TRUE(ledger.is_missed());
  }
}

TEST_F(LedgerTest, WhoWaitsFourTimesAsMuchHasMore) {
  for (Holder* holder : {&pages, &objects.holder}) holder->works_on = 300 * kMiB;
  pages.accesses_ns = 1e8;
  objects.holder.accesses_ns = 4e8;
  look_often();
  EXPECT_GT(objects.holder.limit, pages.limit + 32 * kMiB);
}

TEST_F(LedgerTest, WhatFitsIsMissedByNobody) {
  pages.works_on = 40 * kMiB;
  objects.holder.works_on = 180 * kMiB;
  pages.accesses_ns = objects.holder.accesses_ns = 1e9;
  look_often(300);
  EXPECT_EQ(pages.used, pages.works_on);
  EXPECT_EQ(objects.holder.used, objects.holder.works_on);
  EXPECT_FALSE(ledger.is_missed());
}

TEST_F(LedgerTest, NobodyGrowsBeforeTheOtherHasGivenUp) {
  for (Holder* holder : {&pages, &objects.holder}) holder->works_on = 300 * kMiB;
  pages.accesses_ns = 1e9;
  objects.holder.used = objects.holder.limit;
  objects.holder.gives_up_at_a_look = 0;  // the device takes nothing
  look_often();
  EXPECT_LE(pages.limit, budget / 2);
  objects.holder.gives_up_at_a_look = 0.1;
  look_often(300);
  EXPECT_GE(pages.limit, budget * 7 / 8);
}

TEST_F(LedgerTest, ATotalThatShrinksIsKeptTo) {
  for (Holder* holder : {&pages, &objects.holder}) holder->works_on = 300 * kMiB, holder->accesses_ns = 1e9;
  look_often();
  budget = kBudget / 4;
  for (int i = 0; i < 100; ++i) look();
  EXPECT_LE(pages.limit + objects.holder.limit, budget);
  look_often();
}

TEST_F(LedgerTest, HoldersThatDoAnythingStayWithinTheBudget) {
  std::mt19937 random(20261124);
  for (int step = 0; step < 5000; ++step) {
    for (Holder* holder : {&pages, &objects.holder}) {
      if (random() % 20 != 0) continue;
      holder->works_on = random() % 400 * kMiB;
      holder->accesses_ns = random() % 3 == 0 ? 0 : static_cast<double>(random() % 1000) * 1e6;
      holder->gives_up_at_a_look = static_cast<double>(random() % 10) / 10;
    }
    look();
    ASSERT_LE(std::max(pages.limit, pages.used) + std::max(objects.holder.limit, objects.holder.used), budget)
        << "step " << step;
  }
}

TEST_F(LedgerTest, TooManyClientsAreRefused) {
  std::array<Client, Ledger::kClientsMax> more;
  for (std::size_t i = 0; i + 1 < more.size(); ++i) EXPECT_TRUE(ledger.join(more[i]));
  EXPECT_FALSE(ledger.join(more.back()));
}

TEST(LedgerAlone, IsNotShared) { EXPECT_FALSE(Ledger().is_shared()); }

}  // namespace
}  // namespace hinterland
