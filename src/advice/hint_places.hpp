// The lines of a program that have hints, as its debug information tells: also those that never fetched, of which a
// trace says nothing.
#pragma once

#include <string>
#include <vector>

#include "trace/symbols.hpp"

namespace hinterland::trace {

struct HintPlace {
  std::string file, function;
  int line = 0;
};

// Of all modules of the trace that have debug information; the C++ forms only where they were inlined, as optimising
// compilers do. Each line once.
std::vector<HintPlace> hint_places(const TraceFile& trace, Symbols& symbols);

}  // namespace hinterland::trace
