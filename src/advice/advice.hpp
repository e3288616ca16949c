// From the faults of a trace to the hints that would spare them: which line, which expression, what the hint should
// say, what was observed that speaks for it, and what replaying the trace with it predicts.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "advice/access_pattern.hpp"
#include "advice/hint_review.hpp"
#include "advice/hint_text.hpp"
#include "advice/prediction.hpp"
#include "advice/source_tree.hpp"

namespace hinterland::trace {

enum class Verdict : std::uint8_t {
  hint,       // pays
  little,     // covers faults, and saves next to nothing: read-ahead does already
  none,       // a hint would not help, or cost more than it saves
  not_found,  // it would help, and the expression is not known
};

// Where the hint of an element of a row stands: before the loop, before each piece of it; range: before an algorithm
// that goes through it.
enum class LoopPlace : std::uint8_t { inside, before, pieces, range };

// A hint, ready to be written.
struct ReadyHint {
  std::string path;  // of the source file, where it is
  int line = 0;
  Dialect dialect = Dialect::c;
  std::uint64_t code_address = 0;  // of the site
  std::size_t expression_tokens = 0;
  // Best first: when one does not compile (a bit-field has no address), the next may.
  std::vector<PlacedHint> ways;
};

struct Advice {
  FaultSite site;
  AccessPattern pattern;
  double share = 0;  // of all faults that hints can spare, 0..1
  std::string source_line;
  Verdict verdict = Verdict::none;
  HintForm form;
  std::vector<ReadyHint> hints;  // several where it is not sure which expression faulted: all of them
  bool sure = false;
  LoopPlace loop_place = LoopPlace::inside;
  std::string why;              // for none and not_found, and where it is not sure
  double saves_ns = 0;          // of waiting, if only this one were hinted
  std::uint64_t spares = 0;     // faults
  std::string priority_policy;  // with form.priority: the policy that listens to it
};

struct AdviceReport {
  std::vector<Advice> advice;   // most faults first
  std::uint64_t spareable = 0;  // faults that a hint could spare: all but first touches
  std::uint64_t first_touches = 0;
  std::uint64_t looked_at = 0;  // faults, of the trace's
  double with_stack = 0;
  Costs costs;
  ReplayOptions settings;
  bool predicted = false;
  Prediction now, advised;  // without hints; with all that are advised
  FaultSites sites;
  std::map<std::uint32_t, ReplayHint> forms;  // what was advised, by site
  HintReview review;                          // of the hints that the program has
  std::vector<std::string> remarks;
};

struct AdviceOptions {
  std::size_t top = 20;    // places
  ReplayOptions settings;  // that the program will run with; no policy: nothing is predicted
  // Told what comes next, where that takes its time; may be empty.
  std::function<void(const std::string&)> progress;
};

AdviceReport advise(const TraceFile& trace, Symbols& symbols, SourceTree& sources, const AdviceOptions& options);

}  // namespace hinterland::trace
