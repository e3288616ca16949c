// Skewed choices: Zipf's distribution over ranks, and a permutation that spreads the ranks over the keys.
#pragma once

#include <cstdint>

#include "common/random.hpp"

namespace apps {

// Draws ranks of [0, count), rank r with a weight of (r + 1)^-skew: Hoermann and Derflinger, "Rejection-inversion to
// generate variates from monotone discrete distributions", 1996. Constant time and space, so that drawing itself
// needs no table that would become far. Any number of threads may draw from one.
class Zipf {
 public:
  // count: not 0; skew: above 0.
  Zipf(std::uint64_t count, double skew);
  std::uint64_t draw(Random& random) const;

 private:
  double integral(double x) const;
  double inverse(double area) const;

  std::uint64_t count_;
  double skew_, first_, last_, squeeze_;
};

// A permutation of [0, count), without a table: neighbours in rank are no neighbours in memory. A Feistel network
// over the next power of four, walked until it is within the range (Black and Rogaway, 2002).
class Permutation {
 public:
  Permutation(std::uint64_t count, std::uint64_t seed);
  std::uint64_t operator()(std::uint64_t rank) const;

 private:
  std::uint64_t count_, seed_;
  unsigned half_bits_;
};

}  // namespace apps
