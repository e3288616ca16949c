// The mappings of a process, from /proc/PID/smaps.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace hinterland::cli {

struct Mapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint32_t permissions = 0;  // PF_R, PF_W, PF_X
  bool shared = false;
  std::uint64_t offset = 0;
  std::uint64_t inode = 0;
  std::string name;
  std::uint64_t resident_bytes = 0;
  std::uint64_t anonymous_bytes = 0;  // of these, private: written by the process
  bool not_dumped = false;            // MADV_DONTDUMP
  bool is_device = false;             // must not be read
  bool is_huge = false;               // MAP_HUGETLB

  std::uint64_t length() const { return end - start; }
};

// Ascending by address. Errors: no such process, no permission.
Result<std::vector<Mapping>> read_mappings(pid_t pid);

}  // namespace hinterland::cli
