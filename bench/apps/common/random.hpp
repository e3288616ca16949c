// Random numbers that are the same on every machine: what a standard library's distributions draw is its own affair.
#pragma once

#include <cstdint>

namespace apps {

// A number out of another, each bit of one depending on all of the other (the finaliser of SplitMix64).
constexpr std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

// A 64-bit number brought into [0, bound): value * bound / 2^64. bound is not 0; the bias is at most bound / 2^64.
constexpr std::uint64_t scaled(std::uint64_t value, std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(value) * bound >> 64);
}

// SplitMix64 (Steele, Lea and Flood, 2014). One a thread.
class Random {
 public:
  // `stream` tells the threads of a run apart.
  explicit constexpr Random(std::uint64_t seed, std::uint64_t stream = 0)
      : state_(mixed(seed + 0x9E3779B97F4A7C15u) ^ mixed(~stream)) {}
  constexpr std::uint64_t next() { return mixed(state_ += 0x9E3779B97F4A7C15u); }
  // Below `bound`, which is not 0.
  constexpr std::uint64_t below(std::uint64_t bound) { return scaled(next(), bound); }
  // In [0, 1).
  constexpr double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace apps
