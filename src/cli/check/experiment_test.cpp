#include "cli/check/experiment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

namespace hinterland::cli {
namespace {

TEST(Experiment, PatternsAreBalancedAndTellGroupsApart) {
  for (std::size_t pairs : {8, 9, 16, 33})
    for (std::size_t groups = 1; groups <= groups_for(pairs); ++groups) {
      const std::vector<Pattern> patterns = patterns_for(pairs, groups);
      ASSERT_EQ(patterns.size(), pairs);
      for (std::size_t group = 0; group < groups; ++group) {
        const auto on = std::ranges::count_if(patterns, [&](const Pattern& each) { return each[group]; });
        EXPECT_EQ(on, (pairs + 1) / 2) << pairs << " pairs, group " << group;
      }
      EXPECT_EQ(patterns, patterns_for(pairs, groups)) << "the same each time";
      // An effect of one group is seen as that of no other.
      std::vector<double> differences;
      for (const Pattern& pattern : patterns) differences.push_back(pattern[0] ? 0.1 : -0.1);
      const std::vector<Effect> effects = effects_of(patterns, differences);
      EXPECT_NEAR(effects[0].mean, 0.1, 1e-9);
      for (std::size_t group = 1; group < groups; ++group) EXPECT_NEAR(effects[group].mean, 0, 1e-9);
    }
}

TEST(Experiment, EffectsAreFoundInNoise) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 0.02);
  const std::vector<double> real{0.05, -0.4, 0, 0, 0.2, 0, -0.1, 0};
  const std::vector<Pattern> patterns = patterns_for(16, real.size());
  int right = 0, trials = 200, false_alarms = 0;
  double squares = 0, said = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> differences;
    for (const Pattern& pattern : patterns) {
      double difference = noise(random);
      for (std::size_t i = 0; i < real.size(); ++i) difference += pattern[i] ? real[i] : -real[i];
      differences.push_back(difference);
    }
    const std::vector<Effect> effects = effects_of(patterns, differences);
    right += verdict_of(effects[0]) == Verdict::loses && verdict_of(effects[1]) == Verdict::gains &&
             verdict_of(effects[4]) == Verdict::loses && verdict_of(effects[6]) == Verdict::gains;
    for (std::size_t i : {2, 3, 5, 7}) false_alarms += verdict_of(effects[i]) == Verdict::loses;
    squares += (effects[2].mean - real[2]) * (effects[2].mean - real[2]);
    said += effects[2].deviation;
  }
  EXPECT_GT(right, trials * 9 / 10);
  EXPECT_LT(false_alarms, trials * 4 / 40) << "of 800 groups that do nothing, less than one in forty loses";
  // The deviation that is said is the one that there is.
  EXPECT_NEAR(said / trials, std::sqrt(squares / trials), 0.2 * std::sqrt(squares / trials));
}

TEST(Experiment, AnEffectIsAShareOfTheTime) {
  const Effect effect{std::log(1.04), 0.01};
  EXPECT_NEAR(effect.share(), 0.04, 1e-9);
  EXPECT_NEAR(effect.deviation_share(), 0.0104, 1e-9);
  EXPECT_EQ(verdict_of(effect), Verdict::loses);
  EXPECT_EQ(verdict_of({std::log(0.96), 0.01}), Verdict::gains);
  EXPECT_EQ(verdict_of({std::log(1.02), 0.01}), Verdict::not_known);
}

TEST(Experiment, OneThingTwoWays) {
  EXPECT_EQ(verdict_of(effect_of({0.1, 0.11, 0.09})), Verdict::loses);
  EXPECT_EQ(verdict_of(effect_of({-0.1, -0.11, -0.09})), Verdict::gains);
  EXPECT_EQ(verdict_of(effect_of({0.1, -0.11, 0.2})), Verdict::not_known);
}

TEST(Experiment, FewHintsAreAloneAndManyAreAlike) {
  EXPECT_TRUE(groups_of({}, 8).empty());
  const std::vector<std::vector<std::size_t>> few = groups_of({{10, 1}, {30, 1}, {20, 1}}, 4);
  EXPECT_EQ(few, (std::vector<std::vector<std::size_t>>{{1}, {2}, {0}})) << "what is passed most comes first";

  std::vector<Weight> many;
  for (std::uint64_t i = 1; i <= 40; ++i) many.push_back({1000 * i, i % 2 == 0 ? 1 : 900 * i});
  const std::vector<std::vector<std::size_t>> groups = groups_of(many, 8);
  ASSERT_EQ(groups.size(), 8u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(groups[i], std::vector<std::size_t>{39 - i});
  std::set<std::size_t> all;
  for (const auto& group : groups) all.insert(group.begin(), group.end());
  EXPECT_EQ(all.size(), many.size()) << "each is in one";
  for (std::size_t hint : groups[6]) EXPECT_EQ(many[hint].misses, 1u) << "seldom missing";
  for (std::size_t hint : groups[7]) EXPECT_GT(many[hint].misses, 1u);
  EXPECT_EQ(groups_of(many, 1).size(), 1u);
}

}  // namespace
}  // namespace hinterland::cli
