// How long to wait before the next attempt at a server that is busy: longer each time, and never as long as others
// wait, so that those who were refused together do not come back together.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hinterland::far {

class Backoff {
 public:
  // `seed`: any number that differs from process to process.
  explicit Backoff(std::uint64_t seed = 0) : state_(seed) {}
  void reset() { most_ns_ = kFirstNs; }
  // Between half and all of what doubles from attempt to attempt.
  std::uint64_t next_ns() {
    // The multiplier and increment of Knuth's MMIX generator; its high bits are good enough to scatter clients.
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    std::uint64_t pause = most_ns_ / 2 + (state_ >> 33) % (most_ns_ / 2);
    most_ns_ = std::min(2 * most_ns_, kLastNs);
    return pause;
  }

 private:
  static constexpr std::uint64_t kFirstNs = 4'000'000;   // a server gets through a few dozen handshakes in that time
  static constexpr std::uint64_t kLastNs = 128'000'000;  // some forty attempts within the usual limit of 5 s
  std::uint64_t state_;
  std::uint64_t most_ns_ = kFirstNs;
};

}  // namespace hinterland::far
