// For tests at the limit of mappings that the kernel sets a process (vm.max_map_count).
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <fstream>
#include <string>

#include "base/units.hpp"

namespace hinterland::testing {

inline constexpr std::size_t kMappingsMax = 100'000;

// "" where a test can go to the limit.
inline std::string why_no_mapping_limit() {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return "sanitizers map memory of their own meanwhile";
#endif
  std::size_t limit = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> limit;
  return limit < kMappingsMax ? "" : "vm.max_map_count is large here";
}

// As many mappings as may be, for as long as it lives: each second page of it is one, and then single pages are
// mapped until the kernel refuses. It allows one more for mmap than for mprotect.
class MappingLimit {
 public:
  MappingLimit() : memory_(map(kLength, PROT_NONE)) {
    std::size_t at = 0;
    while (at < kLength && mprotect(memory_ + at, kPageSize, PROT_READ) == 0) at += 2 * kPageSize;
    // Neighbours differ, or they would become one.
    for (std::size_t i = 0; i < kSingles && !reached_; ++i) {
      singles_[i] = map(kPageSize, i % 2 == 0 ? PROT_READ : PROT_EXEC);
      reached_ = singles_[i] == nullptr;
    }
  }
  ~MappingLimit() {
    munmap(memory_, kLength);
    for (char* single : singles_)
      if (single != nullptr) munmap(single, kPageSize);
  }
  MappingLimit(const MappingLimit&) = delete;
  MappingLimit& operator=(const MappingLimit&) = delete;
  bool reached() const { return reached_; }

 private:
  static constexpr std::size_t kLength = 2 * kMappingsMax * kPageSize, kSingles = 8;
  // nullptr: the kernel refuses.
  static char* map(std::size_t length, int protection) {
    void* made = mmap(nullptr, length, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return made == MAP_FAILED ? nullptr : static_cast<char*>(made);
  }
  char* memory_;
  char* singles_[kSingles] = {};
  bool reached_ = false;
};

}  // namespace hinterland::testing
