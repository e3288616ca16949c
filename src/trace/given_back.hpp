// When the program gave memory back, as far as the trace's allocations tell: all large blocks, all mappings, and of
// smaller blocks a sample. And when it got large blocks, whose memory may be some that it gave back.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace_file.hpp"

namespace hinterland::trace {

struct GivenBack {
  enum class How : std::uint8_t {
    unmapped,     // gone at once
    freed,        // what is local stays until it is wanted for others
    taken_again,  // a large block: what is there of what was freed is as good as touched for the first time
  };
  std::uint64_t time_ns = 0;         // since the process started, as faults have it
  std::uint64_t first = 0, end = 0;  // pages; whole ones
  How how = How::freed;
};

// In the order of time.
std::vector<GivenBack> given_back(const TraceFile& trace);

}  // namespace hinterland::trace
