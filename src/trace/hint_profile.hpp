// What a trace says of the program's hints: which of them fetch, and what share of the program's misses they cover.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/profile.hpp"

namespace hinterland::trace {

// A line with a hint. Only hints that found pages missing are in a trace: the others cost no more than a look at a
// table, and nobody counts them.
struct HintSite {
  Site place;              // its name; `samples`: hints recorded with their callers
  double calls = 0;        // estimated from these
  double pages = 0;        // that it named and that were missing: far, unmapped, or to be written
  double pages_ahead = 0;  // that it fetched besides
  bool write = false, sequential = false;
  int priority = 0;
};

struct HintProfile {
  std::uint64_t calls = 0;  // recorded
  std::uint64_t lost = 0;   // not recorded; what follows is scaled up for them
  double pages = 0, pages_ahead = 0;
  std::uint64_t faults = 0;     // that a hint could have spared: all but first touches and those that waited
  std::uint64_t foreseen = 0;   // of these, on pages that a hint had named; only where hints were not followed
  bool only_noted = false;      // hints were not followed: what they name came as faults
  std::vector<HintSite> sites;  // most calls first

  // Of the pages that the program needed and missed, the share that hints asked for, 0..1. Where they were only
  // noted: the share of faults that they foresaw. Pages that came ahead of need are in neither.
  double coverage() const;
};

HintProfile make_hint_profile(const TraceFile& trace, Symbols& symbols);

}  // namespace hinterland::trace
