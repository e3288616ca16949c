// What a trace says against the hints that a program has: those that hardly ever fetch, that stand in the wrong place
// or name the wrong memory, that read ahead what nobody uses, that send pages away which are needed again.
//
// A trace of followed hints shows what they fetch, and the faults that are left. What came of the fetched pages it
// cannot show: a page that is there is used without a trace. Only hints that were noted and not followed (`trace
// --hints note`) leave all uses as faults; use of read-ahead, wrong addresses and priorities are judged from these.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "advice/prediction.hpp"
#include "advice/source_tree.hpp"
#include "trace/symbols.hpp"

namespace hinterland::trace {

enum class HintFault : std::uint8_t {
  seldom_fetches,  // its pages are there: it costs, and brings nothing
  never_fetched,   // it is in the program, and no record of it in the trace
  too_late,        // a line above it in the function faults, and it finds the page there
  wrong_address,   // what it names is not used
  too_small,       // faults go on right behind what it names
  ahead_unused,    // what it reads ahead is hardly used
  priority_hurts,  // what it sends away early comes back soon
};
inline constexpr std::size_t kHintFaults = 7;
extern const std::array<const char*, kHintFaults> kHintFaultNames;  // "seldom fetches", ...

struct HintObjection {
  HintFault fault = HintFault::seldom_fetches;
  std::string why;          // the observation, a sentence
  double saves_ns = 0;      // of waiting without it, where that was replayed
  std::string other_place;  // "scan.c:12": of the faults that it should have spared; or ""
};

struct ReviewedHint {
  std::string function, file;
  int line = 0;
  std::uint64_t fetched = 0;                // records with their callers, of calls that found pages missing
  std::uint64_t found = 0;                  // of calls that found all there; a sample of a sample: no count of calls
  double fetches = 0;                       // estimated from `fetched`
  std::uint64_t named = 0, used = 0;        // pages missing that it named; of these, touched. Only if noted
  std::uint64_t ahead = 0, ahead_used = 0;  // the same of its read-ahead
  std::uint64_t behind = 0, behind_pages = 0;  // calls with faults right behind what they name; such faults
  std::uint64_t early = 0;                     // pages that it fetched again sooner than local memory goes round
  bool write = false, sequential = false;
  int priority = 0;
  std::vector<HintObjection> objections;  // none: nothing speaks against it
  std::string name() const;               // "scan.c:12 visit"
};

struct HintReview {
  std::vector<ReviewedHint> hints;  // most fetches first
  bool noted = false;               // hints were not followed
  std::uint64_t records = 0;        // of hints on missing pages, in the trace
  std::vector<std::string> remarks;
};

// Whether a hint's read-ahead is in vain: of `ahead` pages `used` are used soon, and without it threads would wait
// `saves_ns` less (below zero: more). What a miss takes is measured, and more on a busy machine, where read-ahead
// seems worth more for that; where hardly a page is used, it does not count.
bool reads_ahead_in_vain(std::uint64_t ahead, std::uint64_t used, double saves_ns);

// `settings`: those that the program will run with; no policy: nothing is replayed.
HintReview review_hints(const TraceFile& trace, Symbols& symbols, SourceTree& sources, const FaultSites& sites,
                        const Costs& costs, const ReplayOptions& settings);

}  // namespace hinterland::trace
