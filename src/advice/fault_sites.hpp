// Which place in the program each fault of a trace belongs to. Stacks are a sample: a fault without one is given the
// place of a sample like it, so that whole access patterns can be looked at, and replayed, place by place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/symbols.hpp"
#include "trace/trace_file.hpp"

namespace hinterland::trace {

// A place where memory is touched: finer than a line, where the compiler noted columns.
struct FaultSite {
  std::string function, file, module;
  std::string via;  // the library function called there that faulted; ""
  int line = 0, column = 0;
  std::uint64_t code_address = 0;
  std::uint64_t samples = 0;
  // Of the commonest stack: its calls, from the nearest on, where at least half of the samples have it.
  std::vector<std::uint64_t> callers;
  std::string name() const;  // "bfs.cpp:120:9 visit"
};

struct FaultSites {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::vector<FaultSite> sites;
  std::vector<std::uint32_t> of_fault;  // by the fault's number in the trace; kNone where nothing is known
  double with_stack = 0;                // share of the faults that have a stack of their own, 0..1
};

// Of the first `faults_max` faults.
FaultSites find_fault_sites(const TraceFile& trace, Symbols& symbols, std::uint64_t faults_max);

}  // namespace hinterland::trace
