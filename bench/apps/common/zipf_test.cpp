// Draws against the distribution's own numbers, and the permutation against what a permutation is.
#include "common/zipf.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace apps {
namespace {

TEST(Zipf, DrawsRanksByTheirWeight) {
  constexpr std::uint64_t kCount = 1000;
  constexpr int kDraws = 400'000;
  for (double skew : {0.3, 0.8, 0.99, 1.0, 1.02, 2.0}) {
    Zipf ranks(kCount, skew);
    Random random(5);
    std::vector<double> drawn(kCount), weight(kCount);
    double sum = 0;
    for (std::uint64_t i = 0; i < kCount; ++i) sum += weight[i] = std::pow(static_cast<double>(i + 1), -skew);
    for (int i = 0; i < kDraws; ++i) {
      std::uint64_t rank = ranks.draw(random);
      ASSERT_LT(rank, kCount);
      ++drawn[rank];
    }
    // Chi-squared with 999 degrees of freedom: above 1200 once in 100,000 times. Rare ranks are taken together.
    double chi = 0, expected = 0, seen = 0;
    for (std::uint64_t i = 0; i < kCount; ++i) {
      expected += kDraws * weight[i] / sum;
      seen += drawn[i];
      if (expected < 20 && i + 1 < kCount) continue;
      chi += (seen - expected) * (seen - expected) / expected;
      expected = seen = 0;
    }
    EXPECT_LT(chi, 1200) << "skew " << skew;
  }
}

TEST(Zipf, HasARankOfItsOwnForEachOfFew) {
  Random random(1);
  Zipf one(1, 0.8), two(2, 1.0);
  int first = 0;
  for (int i = 0; i < 30'000; ++i) {
    EXPECT_EQ(one.draw(random), 0u);
    first += two.draw(random) == 0;
  }
  EXPECT_NEAR(first, 20'000, 500);
}

TEST(Permutation, IsOne) {
  for (std::uint64_t count : {1, 2, 3, 5, 64, 1000, 4097}) {
    Permutation of(count, 9);
    std::vector<bool> seen(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      ASSERT_LT(of(i), count);
      EXPECT_FALSE(seen[of(i)]) << i << " of " << count;
      seen[of(i)] = true;
    }
  }
}

TEST(Permutation, SpreadsNeighbours) {
  Permutation of(1 << 20, 1);
  int near = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    auto a = static_cast<std::int64_t>(of(i)), b = static_cast<std::int64_t>(of(i + 1));
    near += std::abs(a - b) < 1024;
  }
  EXPECT_LT(near, 20);  // 2 by chance
}

}  // namespace
}  // namespace apps
