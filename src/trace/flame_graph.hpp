// All stacks of a profile as one tree of callers and callees, as the page's flame graph reads it.
#pragma once

#include <string>
#include <vector>

#include "trace/profile.hpp"

namespace hinterland::trace {

struct FlameGraph {
  std::vector<std::string> frames;  // texts: function and where it is
  // JSON: a node is [frame, [faults by kind, without the zeros at the end], [children, most faults first]]. Frames
  // that all faults of their caller go through stand with it: [[caller, frame, ...], ...]. Nodes with less than
  // 1/100000 of all faults are left out: they are too narrow to be seen.
  std::string tree;
};

FlameGraph make_flame_graph(const TraceFile& trace, const Profile& profile, Symbols& symbols);

}  // namespace hinterland::trace
