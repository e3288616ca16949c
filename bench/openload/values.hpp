// The keys and values of the load: each value follows from its key, so that every reply can be checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace openload {

// xorshift64: the same numbers on every machine for a seed.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }
  std::uint64_t below(std::uint64_t bound) { return (next() >> 11) % bound; }
  double share() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // in [0, 1)

 private:
  std::uint64_t state_;
};

// Half of a value compresses. `target` is overwritten.
void make_value(std::uint64_t key, std::size_t bytes, std::string& target);

// Requests in the protocol of Redis (RESP), appended to `out`.
void append_get(std::uint64_t key, std::string& out);
void append_set(std::uint64_t key, std::string_view value, std::string& out);

}  // namespace openload
