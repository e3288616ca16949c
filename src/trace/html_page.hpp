// The report as one page for a browser, which needs nothing else: flame graph, places with their source, where and
// when, how soon pages fault again, and what more local memory would save. The template is page.html.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trace/profile.hpp"

namespace hinterland::trace {

// What speaks against one of the program's hints.
struct HintRemark {
  std::string hint;   // "scan.c:12 visit"
  std::string fault;  // in a word or two
  std::string why;    // a sentence
};
// Called once, and only for a trace with hints.
using RemarksOnHints = std::function<std::vector<HintRemark>(const TraceFile&, Symbols&)>;

// `profile` by line. Reads source files, where they are; replays at most the first few million faults.
std::string html_page(const TraceFile& trace, const Profile& profile, Symbols& symbols,
                      const RemarksOnHints& remarks);

}  // namespace hinterland::trace
