// Random numbers from a seed: small, quick, the same everywhere (splitmix64, Steele et al. 2014).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace churn {

constexpr std::uint64_t scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return scramble(state_ += 0x9e3779b97f4a7c15); }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  // 1..max, each power of two as likely as the next: small ones are common, large ones do occur.
  std::size_t up_to(std::size_t max) {
    std::size_t most = std::size_t{1} << below(static_cast<std::size_t>(std::bit_width(max)));
    return 1 + below(most < max ? most : max);
  }

 private:
  std::uint64_t state_;
};

}  // namespace churn
