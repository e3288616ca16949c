// What hints at some places would change: the trace's faults replayed with them, and what that costs in waiting.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "advice/fault_sites.hpp"
#include "trace/latencies.hpp"
#include "trace/replay.hpp"

namespace hinterland::trace {

// Nanoseconds of waiting, of faults as the trace measured them. What a hint spares was measured before the start
// (handler_cost.hpp), or else is the least that the floor measurement (bench/floor) has shown: a miss by a handler's
// thread takes 4.3 us where one by a hint takes 2.1, elsewhere 8.5 and 2.8.
struct Costs {
  double fetch_fault = 0, refault_fault = 0, protection_fault = 0;
  double fetch_hint = 0, refault_hint = 0, protection_hint = 0;
  double page_ahead = 0;                    // a page more with the same request: in, and another out
  double first_touch = 0, zeros_ahead = 0;  // more than natively; of a page more that comes with it
  bool measured = false;                    // false: the trace has no latencies, and 10 us a fault are taken for them
  // As where nobody else wants the processors. What is compiled into a program is chosen by these: how long faults
  // waited for a processor was the machine's affair, that day.
  Costs when_idle() const;
};
Costs costs_of(std::span<const StackSample> samples, const FaultWay& way, const ReadAheadCost& recorded);

struct Prediction {
  ReplayResult result;
  double waiting_ns = 0;  // of all threads together
};

// What the faults and hints of a replay cost, without first touches, which no hint spares. Nanoseconds, of all
// threads together.
double waiting_of(const ReplayResult& result, const Costs& costs);
// What the pages cost that are written out with a hint for writing and would not be with it for reading: such a hint
// marks the pages that it names as written, whoever writes to them. No thread of the program waits for that, but it
// takes a processor about as long as a fetch by a hint. Nanoseconds.
double written_for_nothing(const ReplayResult& for_writing, const ReplayResult& for_reading, const Costs& costs);
// What first touches cost then, where those of so many bytes cost nothing: paging begins when local memory is full.
double waiting_for_first_touches(const ReplayResult& result, const Costs& costs, std::uint64_t free_bytes);

class Predictor {
 public:
  // `settings`: those that the program will run with. Keeps references.
  Predictor(const TraceFile& trace, const FaultSites& sites, const Costs& costs, const ReplayOptions& settings);
  // False: a policy that is not known here; then nothing can be predicted.
  bool works() const { return options_.policy != nullptr; }
  // `hints[site]` for each site that has one. `policy`: another than the trace's.
  Prediction with(const std::map<std::uint32_t, ReplayHint>& hints, const hl_policy_ops* policy = nullptr) const;

 private:
  const TraceFile& trace_;
  const FaultSites& sites_;
  Costs costs_;
  ReplayOptions options_;
};

}  // namespace hinterland::trace
