// Time in nanoseconds on the monotonic clock.
#pragma once

#include <ctime>

#include <cstdint>

namespace hinterland {

inline std::uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace hinterland
