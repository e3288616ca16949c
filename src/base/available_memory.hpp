// How much memory a program could take now: what the system has free, or what its memory cgroup still allows.
#pragma once

#include <cstdint>
#include <string>

namespace hinterland {

struct AvailableMemory {
  std::uint64_t system_bytes = 0;        // MemAvailable; 0 when /proc/meminfo cannot be read
  std::uint64_t cgroup_limit_bytes = 0;  // the tightest limit on the way to the root; 0: none
  std::uint64_t cgroup_room_bytes = 0;   // limit less what is in use and cannot be dropped; meaningless without one
  int cgroup_version = 0;                // 1 or 2: whose limit it is; 0: none

  std::uint64_t bytes() const {
    return cgroup_limit_bytes != 0 && cgroup_room_bytes < system_bytes ? cgroup_room_bytes : system_bytes;
  }
};

// Reads /proc and /sys/fs/cgroup (both below `root`, which tests set). Blocks for file reads only.
AvailableMemory available_memory(const std::string& root = "");

}  // namespace hinterland
