// What a program says about its next accesses. (Eden 3.1)
#pragma once

#include <cstddef>
#include <cstdint>

namespace hinterland {

struct Hint {
  std::uintptr_t address = 0;       // anything: what does not lie in the window is passed over
  std::size_t size = 1;             // bytes from there on; 0 counts as 1
  std::int32_t read_ahead = 0;      // pages behind the range, or, below zero, before it
  bool read_ahead_limited = false;  // no more than the program's setting for faults
  bool write = false;
  std::uint8_t priority = 0;  // to the policy: 0 (keep) to 15 (evict soon)
};

}  // namespace hinterland
