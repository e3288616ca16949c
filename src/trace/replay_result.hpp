// What a replay counts.
#pragma once

#include <cstdint>

namespace hinterland::trace {

struct ReplayResult {
  std::uint64_t accesses = 0;     // in the trace: all that missed when it was recorded
  std::uint64_t hits = 0;         // of these, on pages that would be local
  std::uint64_t first_touch = 0;  // faults, by kind
  std::uint64_t fetches = 0;      // of far pages
  std::uint64_t refaults = 0;
  std::uint64_t protection = 0;      // first writes to clean pages; not among faults()
  std::uint64_t hinted_fetches = 0;  // calls instead of faults
  std::uint64_t hinted_refaults = 0;
  std::uint64_t hinted_protection = 0;
  std::uint64_t pages_in = 0;     // read-ahead included
  std::uint64_t pages_out = 0;    // written
  std::uint64_t ahead = 0;        // pages that nobody had asked for yet
  std::uint64_t ahead_used = 0;   // of these, touched before they left
  std::uint64_t zeros_ahead = 0;  // of those that nobody had asked for, with first touches: they are not fetched
  std::uint64_t faults() const { return first_touch + fetches + refaults; }
  std::uint64_t hinted() const { return hinted_fetches + hinted_refaults + hinted_protection; }
};

}  // namespace hinterland::trace
