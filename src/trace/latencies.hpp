// What the faults of a trace cost their threads, by kind; and what those of a replay would cost.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "trace/replay_outlook.hpp"
#include "trace/replay_result.hpp"
#include "trace/trace_file.hpp"

namespace hinterland::trace {

// Nanoseconds, of samples that know their latency: from the look at the fault until it is served, and, where a
// handler serves it, until its thread runs again.
struct Latency {
  double mean = 0, quick = 0;  // quick: one sample in 32 took no longer; 0 where there is none
  bool known() const { return mean > 0; }
};
Latency latency_of(std::span<const StackSample> samples, std::initializer_list<FaultKind> kinds);

// Pages that came with a fault besides its own when the trace was recorded, and what each of them took. A latency
// that was measured then has that in it.
struct ReadAheadCost {
  double fetched = 0, zeros = 0;              // pages a fault: of those that fetch, and of first touches
  double fetched_ns = 1100, zeros_ns = 2500;  // a page: in, and another out for it
};
// By the trace's device. Measured with streams, a graph and a hash table on two CPUs, a quarter local: a page more
// took 0.7 to 1.1 us over mem:, 2.8 to 4.3 over zmem:, 2.0 to 3.0 over tcp:, 3.8 over file:; of first touches 2.5
// to 3.3, for what leaves in their place has no room at the device yet. Without an outlook, no pages came ahead.
ReadAheadCost read_ahead_cost(const TraceFile& trace, const ReplayOutlook* outlook);

// What a fault takes besides the work on its page, in nanoseconds: the way to who serves it, and back.
struct FaultWay {
  double more_than_a_hint =
      0;                  // as measured when the trace began; where it was not, the least that bench/floor showed
  double in_latency = 0;  // of that, what a sample's latency has in it: a handler wakes the thread
  double besides_latency() const { return more_than_a_hint - in_latency; }
};
FaultWay fault_way(const Summary& summary);

// Nanoseconds that a fault costs its thread with no page but its own, and each page that comes with it. That is the
// latency, and what is in none: the trap, the signal or the message's way to the handler, the switches of threads.
struct FaultCosts {
  double first_touch = 0, fetch = 0, refault = 0, protection = 0;
  double fetched_ahead = 0, zeros_ahead = 0;
  bool known = false;  // false: the trace has no latencies
};
FaultCosts fault_costs(std::span<const StackSample> samples, const FaultWay& way, const ReadAheadCost& recorded);

// Of all threads together.
double waiting_ns(const ReplayResult& result, const FaultCosts& costs);

}  // namespace hinterland::trace
