// What more local memory would save: a trace replayed at several budgets, from the recorded one upwards.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace_file.hpp"

namespace hinterland::trace {

struct CurvePoint {
  std::uint64_t local_bytes = 0;
  std::uint64_t fetches = 0;  // faults on far pages, as `hinterland replay` foretells them
};

// Up to the first budget without fetches; empty where the trace's policy is not known here. Replays the first
// `faults_max` faults at each budget, on several threads of its own, and blocks until they are done.
std::vector<CurvePoint> memory_curve(const TraceFile& trace, std::uint64_t faults_max);

}  // namespace hinterland::trace
