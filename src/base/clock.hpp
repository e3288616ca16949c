// Time in nanoseconds.
#pragma once

#include <ctime>

#include <cstdint>

namespace hinterland {

inline std::uint64_t time_of_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}
inline std::uint64_t now_ns() { return time_of_ns(CLOCK_MONOTONIC); }
inline std::uint64_t thread_cpu_ns() { return time_of_ns(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace hinterland
