// offload.hpp without a runtime, against the standard library: what is computed, whoever computes it.
#include "hinterland/offload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace {

using hl::far::compare;

template <typename T>
std::vector<T> some_values(std::mt19937_64& random, std::size_t count) {
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>)
      value = static_cast<T>(static_cast<double>(static_cast<std::int64_t>(random())) / 1e16);
    else
      value = static_cast<T>(random() >> 20);
    if (random() % 2 == 0) value = static_cast<T>(static_cast<int>(random() % 50) - (std::is_signed_v<T> ? 25 : 0));
  }
  return values;
}

template <typename T>
class OffloadHeader : public ::testing::Test {};
using Elements = ::testing::Types<std::int32_t, std::int64_t, std::uint32_t, std::uint64_t, float, double>;
TYPED_TEST_SUITE(OffloadHeader, Elements);

TYPED_TEST(OffloadHeader, GivesWhatTheStandardLibraryGives) {
  using T = TypeParam;
  std::mt19937_64 random(7);
  for (std::size_t count : {0u, 1u, 2u, 7u, 1023u, 5000u, 12'345u}) {
    const std::vector<T> values = some_values<T>(random, count);
    std::vector<T> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(hl::far::min(values).has_value(), count != 0);
    EXPECT_EQ(hl::far::mean(values).has_value(), count != 0);
    EXPECT_EQ(hl::far::median(values).has_value(), count != 0);
    const long double all = std::accumulate(values.begin(), values.end(), 0.0L);
    EXPECT_NEAR(static_cast<double>(hl::far::sum(values)), static_cast<double>(all),
                1e-3 + std::abs(static_cast<double>(all)) * 1e-9);
    EXPECT_EQ(hl::far::unique(values), std::vector<T>(sorted.begin(), std::unique(sorted.begin(), sorted.end())))
        << "unique";
    if (count == 0) continue;
    sorted = values;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(*hl::far::min(values), sorted.front());
    EXPECT_EQ(*hl::far::max(values), sorted.back());
    EXPECT_EQ(*hl::far::median(values), sorted[(count - 1) / 2]);
    for (std::size_t rank : {std::size_t{0}, count / 3, count - 1})
      EXPECT_EQ(*hl::far::nth(values, rank), sorted[rank]);
    EXPECT_FALSE(hl::far::nth(values, count));
    EXPECT_NEAR(*hl::far::mean(values), static_cast<double>(all / static_cast<long double>(count)), 1e-3);
  }
}

TYPED_TEST(OffloadHeader, ComparesAsTheOperatorsDo) {
  using T = TypeParam;
  std::mt19937_64 random(8);
  const std::vector<T> values = some_values<T>(random, 3000);
  const T with = values[17];
  auto check = [&](compare how, auto compares) {
    std::vector<std::size_t> right;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (compares(values[i], with)) right.push_back(i);
    EXPECT_EQ(hl::far::filter(values, how, with), right);
    EXPECT_EQ(hl::far::count(values, how, with), right.size());
    std::vector<T> out(right.size());
    hl::far::gather(values, right, out);
    for (std::size_t i = 0; i < right.size(); ++i) EXPECT_EQ(out[i], values[right[i]]);
  };
  check(compare::equal, std::equal_to<T>());
  check(compare::not_equal, std::not_equal_to<T>());
  check(compare::less, std::less<T>());
  check(compare::less_equal, std::less_equal<T>());
  check(compare::greater, std::greater<T>());
  check(compare::greater_equal, std::greater_equal<T>());
}

TEST(OffloadNumbers, WhatIsNoNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {nan, 3, -infinite, nan, -0.0, 0.0, infinite};
  EXPECT_EQ(*hl::far::min(values), -infinite);
  EXPECT_EQ(*hl::far::max(values), infinite);
  EXPECT_TRUE(std::isnan(hl::far::sum(values)));
  EXPECT_EQ(hl::far::count(values, compare::not_equal, 3), 6u);
  EXPECT_EQ(hl::far::count(values, compare::equal, nan), 0u);
  EXPECT_EQ(*hl::far::nth(values, 4), infinite);
  EXPECT_TRUE(std::isnan(*hl::far::nth(values, 5)));
  const std::vector<double> distinct = hl::far::unique(values);
  ASSERT_EQ(distinct.size(), 5u);
  EXPECT_EQ(distinct[1], 0.0);
  EXPECT_FALSE(std::signbit(distinct[1]));
  EXPECT_TRUE(std::isnan(distinct[4]));
  EXPECT_FALSE(hl::far::max(std::vector<float>{std::numeric_limits<float>::quiet_NaN()}));
}

TEST(OffloadNumbers, SumsThatDoNotFit) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(),
                         least = std::numeric_limits<std::int64_t>::min();
  EXPECT_THROW(static_cast<void>(hl::far::sum(std::vector<std::int64_t>{most, 1})), std::overflow_error);
  EXPECT_THROW(static_cast<void>(hl::far::sum(std::vector<std::int64_t>{least, -1})), std::overflow_error);
  EXPECT_EQ(hl::far::sum(std::vector<std::int64_t>{most, 1, -1, least}), -1) << "on the way it may be any";
  EXPECT_EQ(*hl::far::mean(std::vector<std::int64_t>{most, most}), static_cast<double>(most));
  EXPECT_EQ(hl::far::sum(std::vector<std::uint64_t>{~std::uint64_t{0} - 1, 1}), ~std::uint64_t{0});
  EXPECT_THROW(static_cast<void>(hl::far::sum(std::vector<std::uint64_t>{~std::uint64_t{0}, 1})),
               std::overflow_error);
}

}  // namespace
