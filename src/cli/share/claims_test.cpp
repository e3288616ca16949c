// Programs that share a budget, as a model: each has pages that it uses at random, and misses those that are far.
#include "cli/share/claims.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/options.hpp"
#include "base/units.hpp"

namespace hinterland::cli {
namespace {

constexpr std::uint64_t kTotal = 256 * kMiB;

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
  std::vector<std::uint64_t> budgets = share_out(kTotal, claims);
  for (std::size_t i = 0; i < programs.size(); ++i) {
    programs[i].budget = budgets[i];
    programs[i].used = std::min(programs[i].used, budgets[i]);
    if (programs[i].accesses > 0) programs[i].used = std::min(budgets[i], programs[i].works_on);
  }
}

void look_often(std::vector<Program>& programs, int times = 100) {
  for (int i = 0; i < times; ++i) {
    look(programs);
    ASSERT_LE(held(programs) + first_share(kTotal), kTotal) << "look " << i;
  }
}

TEST(SharedBudget, OneProgramGetsAllButAFirstShare) {
  std::vector<Program> one{{kTotal, 1000, first_share(kTotal), 0}};
  look_often(one);
  EXPECT_GE(one[0].budget, kTotal - 3 * first_share(kTotal));
}

TEST(SharedBudget, WhileAllFitsNobodyPages) {
  std::vector<Program> three(3, {48 * kMiB, 1000, first_share(kTotal), 0});
  look_often(three);
  for (const Program& each : three) EXPECT_EQ(each.used, each.works_on);
}

TEST(SharedBudget, WhoGrowsHasRoomBesideOneThatMisses) {
  std::vector<Claim> claims{{64 * kMiB, 64 * kMiB, 1000}, {40 * kMiB, 40 * kMiB, 0}};
  EXPECT_GE(share_out(kTotal, claims)[1], 64 * kMiB);
}

TEST(SharedBudget, MemoryGoesToWhoWorksAndComesBack) {
  const std::uint64_t first = first_share(kTotal);
  std::vector<Program> two{{200 * kMiB, 1000, first, 0}, {200 * kMiB, 0, first, 0}};
  for (int phase = 0; phase < 4; ++phase) {
    std::size_t working = static_cast<std::size_t>(phase % 2), idle = 1 - working;
    two[working].accesses = 1000;
    two[idle].accesses = 0;
    look_often(two);
    EXPECT_GT(two[working].budget, 3 * two[idle].budget) << "phase " << phase;
    EXPECT_GE(two[idle].budget, least_share(kTotal, 2));
  }
}

TEST(SharedBudget, AlikeProgramsComeToTheSame) {
  const std::uint64_t first = first_share(kTotal);
  std::vector<Program> two{{300 * kMiB, 1000, 11 * first, 11 * first}, {300 * kMiB, 1000, 2 * first, 2 * first}};
  look_often(two);
  EXPECT_LT(two[0].budget, two[1].budget + first);
  EXPECT_LT(two[1].budget, two[0].budget + first);
}

TEST(SharedBudget, WhoMissesMoreGetsMore) {
  const std::uint64_t first = first_share(kTotal);
  std::vector<Program> two{{300 * kMiB, 4000, first, 0}, {300 * kMiB, 1000, first, 0}};
  look_often(two);
  EXPECT_GT(two[0].budget, two[1].budget + 2 * first);
}

TEST(SharedBudget, NobodyGrowsBeforeOthersHaveGivenUp) {
  const std::uint64_t first = first_share(kTotal);
  // The first was asked for less and has not given it up yet.
  std::vector<Claim> claims{{2 * first, 12 * first, 0}, {3 * first, 3 * first, 1000}};
  EXPECT_LE(share_out(kTotal, claims)[1], 3 * first);
}

TEST(SharedBudget, ManyProgramsHaveTheMinimum) {
  const std::uint64_t minimum = option(OptionId::local).minimum;
  std::vector<Claim> many(100, {minimum, minimum, 10});
  for (std::uint64_t budget : share_out(kTotal, many)) EXPECT_EQ(budget, minimum);
}

TEST(SharedBudget, NoProgramsAreNoTrouble) { EXPECT_TRUE(share_out(kTotal, {}).empty()); }

}  // namespace
}  // namespace hinterland::cli
