// When the program gave memory back, as far as the trace's allocations tell: all blocks of 256 KiB and more, all
// mappings, and of smaller blocks a sample.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace_file.hpp"

namespace hinterland::trace {

struct GivenBack {
  std::uint64_t time_ns = 0;         // since the process started, as faults have it
  std::uint64_t first = 0, end = 0;  // pages; whole ones
  bool unmapped = false;             // gone at once; else freed: what is local stays until it is wanted for others
};

// In the order of time.
std::vector<GivenBack> given_back(const TraceFile& trace);

}  // namespace hinterland::trace
