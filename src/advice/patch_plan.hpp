// Which of the advised hints go into a patch: those that a compiler takes. What it does not take, and what could not
// be tried, is named.
#pragma once

#include <string>
#include <vector>

#include "advice/advice.hpp"

namespace hinterland::trace {

struct PatchPlan {
  std::string root;  // the folder to apply it in
  std::string diff;  // "" when there is nothing to change
  std::size_t hints = 0;
  bool compiled = false;  // the patched program was compiled
  std::string why_not_compiled;
  std::vector<std::string> dropped;  // hints that did not compile: sentences
};

// `source_folder`: as for SourceTree; paths in the diff are relative to it, or else to what all files have in common.
// In the report, what is left out is taken out, and the way that each hint is written comes first.
PatchPlan plan_patch(AdviceReport& report, Symbols& symbols, SourceTree& sources, const std::string& source_folder);

}  // namespace hinterland::trace
