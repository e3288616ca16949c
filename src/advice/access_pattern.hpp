// How the faults of a place go through memory: in order or not, in how long runs, whether pages come back, whether
// they are written. Of the faults of a trace, which are the accesses that missed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "advice/fault_sites.hpp"
#include "trace/profile.hpp"

namespace hinterland::trace {

struct AccessPattern {
  std::array<std::uint64_t, kFaultKinds> faults{};
  std::uint64_t all = 0;
  std::uint64_t fetches = 0;     // read, write and refault: what a hint can do
  double sequential = 0;         // share of the fetches that go on where the place's last one was, on its thread
  double in_rows = 0;            // share of the fetches that go on upwards in one of eight rows, which may take turns
  double run_pages = 1;          // mean length of what goes on so, in pages, jumps included
  int direction = 0;             // of most steps: 1, -1; 0 without any
  double next_page = 0;          // share of fetches behind which the thread fetches the next page at once
  double comes_back = 0;         // share of fetched pages that had been fetched before
  double used_again = 0;         // share of fetched pages that are fetched again later, by whatever place
  std::uint64_t back_after = 0;  // faults in between, median
  double written_later = 0;      // share of read fetches whose page was then written by a fault of its own
  double writes() const;         // share of the fetches and protection faults that write
};

std::vector<AccessPattern> access_patterns(const TraceFile& trace, const FaultSites& sites);

}  // namespace hinterland::trace
