// Programs that share a budget, as a model: each has pages that it uses at random, and misses those that are far.
#include "base/claims.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/units.hpp"

namespace hinterland {
namespace {

constexpr std::uint64_t kTotal = 256 * kMiB, kFirst = 16 * kMiB;
constexpr SharedTotal kShared{kTotal, kFirst, kFirst, 2 * kFirst, 100};

struct Program {
  std::uint64_t works_on;  // bytes that it uses, all alike; what it holds of earlier phases counts as well
  double accesses;         // a second; 0: idle
  std::uint64_t budget, used;
};

std::uint64_t held(const std::vector<Program>& programs) {
  std::uint64_t sum = 0;
  for (const Program& each : programs) sum += std::max(each.budget, each.used);
  return sum;
}

// One look, and what follows: those with less give up pages, those that work fill what they have.
void look(std::vector<Program>& programs) {
  std::vector<Claim> claims;
  for (const Program& each : programs) {
    double local = std::min(1.0, static_cast<double>(each.used) / static_cast<double>(each.works_on));
    claims.push_back({each.budget, each.used, each.accesses * (1 - local)});
  }
  std::vector<std::uint64_t> budgets = share_out(kShared, claims);
  for (std::size_t i = 0; i < programs.size(); ++i) {
    programs[i].budget = budgets[i];
    programs[i].used = std::min(programs[i].used, budgets[i]);
    if (programs[i].accesses > 0) programs[i].used = std::min(budgets[i], programs[i].works_on);
  }
}

void look_often(std::vector<Program>& programs, int times = 100) {
  for (int i = 0; i < times; ++i) {
    look(programs);
    ASSERT_LE(held(programs) + kFirst, kTotal) << "look " << i;
  }
}

TEST(SharedBudget, OneProgramGetsAllButAFirstShare) {
  std::vector<Program> one{{kTotal, 1000, kFirst, 0}};
  look_often(one);
  EXPECT_GE(one[0].budget, kTotal - 3 * kFirst);
}

TEST(SharedBudget, WhileAllFitsNobodyPages) {
  std::vector<Program> three(3, {48 * kMiB, 1000, kFirst, 0});
  look_often(three);
  for (const Program& each : three) EXPECT_EQ(each.used, each.works_on);
}

TEST(SharedBudget, WhoGrowsHasRoomBesideOneThatMisses) {
  std::vector<Claim> claims{{64 * kMiB, 64 * kMiB, 1000}, {40 * kMiB, 40 * kMiB, 0}};
  EXPECT_GE(share_out(kShared, claims)[1], 64 * kMiB);
}

TEST(SharedBudget, MemoryGoesToWhoWorksAndComesBack) {
  std::vector<Program> two{{200 * kMiB, 1000, kFirst, 0}, {200 * kMiB, 0, kFirst, 0}};
  for (int phase = 0; phase < 4; ++phase) {
    std::size_t working = static_cast<std::size_t>(phase % 2), idle = 1 - working;
    two[working].accesses = 1000;
    two[idle].accesses = 0;
    look_often(two);
    EXPECT_GT(two[working].budget, 3 * two[idle].budget) << "phase " << phase;
    EXPECT_GE(two[idle].budget, kShared.least);
  }
}

TEST(SharedBudget, AlikeProgramsComeToTheSame) {
  std::vector<Program> two{{300 * kMiB, 1000, 11 * kFirst, 11 * kFirst}, {300 * kMiB, 1000, 2 * kFirst, 2 * kFirst}};
  look_often(two);
  EXPECT_LT(two[0].budget, two[1].budget + kFirst);
  EXPECT_LT(two[1].budget, two[0].budget + kFirst);
}

TEST(SharedBudget, WhoMissesMoreGetsMore) {
  std::vector<Program> two{{300 * kMiB, 4000, kFirst, 0}, {300 * kMiB, 1000, kFirst, 0}};
  look_often(two);
  EXPECT_GT(two[0].budget, two[1].budget + 2 * kFirst);
}

TEST(SharedBudget, NobodyGrowsBeforeOthersHaveGivenUp) {
  // The first was asked for less and has not given it up yet.
  std::vector<Claim> claims{{2 * kFirst, 12 * kFirst, 0}, {3 * kFirst, 3 * kFirst, 1000}};
  EXPECT_LE(share_out(kShared, claims)[1], 3 * kFirst);
}

TEST(SharedBudget, ManyProgramsHaveTheLeast) {
  constexpr std::uint64_t kLeast = 4 * kMiB;
  std::vector<Claim> many(100, {kLeast, kLeast, 10});
  for (std::uint64_t budget : share_out({kTotal, kFirst, kLeast, 2 * kFirst, 100}, many)) EXPECT_EQ(budget, kLeast);
}

TEST(SharedBudget, NoProgramsAreNoTrouble) { EXPECT_TRUE(share_out(kShared, {}).empty()); }

}  // namespace
}  // namespace hinterland
