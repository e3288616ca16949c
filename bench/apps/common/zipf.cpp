#include "common/zipf.hpp"

#include <algorithm>
#include <cmath>

namespace apps {
namespace {

// (exp(x) - 1) / x and log(1 + x) / x, also where x is so small that the terms vanish: a skew near 1.
double expm1_over(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2 * (1 + x / 3); }
double log1p_over(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x * (0.5 - x / 3); }

}  // namespace

Zipf::Zipf(std::uint64_t count, double skew) : count_(count), skew_(skew) {
  first_ = integral(1.5) - 1;
  last_ = integral(static_cast<double>(count) + 0.5);
  squeeze_ = 2 - inverse(integral(2.5) - std::pow(2.0, -skew));
}

// Of x^-skew, up to a constant.
double Zipf::integral(double x) const {
  double log_x = std::log(x);
  return expm1_over((1 - skew_) * log_x) * log_x;
}

double Zipf::inverse(double area) const {
  double t = std::max(-1.0, area * (1 - skew_));  // rounding must not leave the domain of the logarithm
  return std::exp(log1p_over(t) * area);
}

std::uint64_t Zipf::draw(Random& random) const {
  for (;;) {
    double area = last_ + random.unit() * (first_ - last_);
    double x = inverse(area);
    double k = std::min(std::max(std::floor(x + 0.5), 1.0), static_cast<double>(count_));
    if (k - x <= squeeze_ || area >= integral(k + 0.5) - std::exp(-skew_ * std::log(k)))
      return static_cast<std::uint64_t>(k) - 1;
  }
}

Permutation::Permutation(std::uint64_t count, std::uint64_t seed) : count_(count), seed_(mixed(seed)), half_bits_(1) {
  while (half_bits_ < 32 && (std::uint64_t{1} << (2 * half_bits_)) < count) ++half_bits_;
}

std::uint64_t Permutation::operator()(std::uint64_t rank) const {
  std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1, at = rank;
  do {
    std::uint64_t left = at >> half_bits_, right = at & mask;
    for (unsigned round = 0; round < 4; ++round) {
      std::uint64_t next = left ^ (mixed(seed_ + round + (right << 3)) & mask);
      left = right;
      right = next;
    }
    at = left << half_bits_ | right;
  } while (at >= count_);
  return at;
}

}  // namespace apps
