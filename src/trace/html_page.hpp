// The report as one page for a browser, which needs nothing else: flame graph, places with their source, where and
// when, how soon pages fault again, and what more local memory would save. The template is page.html.
#pragma once

#include <string>

#include "trace/profile.hpp"

namespace hinterland::trace {

// `profile` by line. Reads source files, where they are; replays at most the first few million faults.
std::string html_page(const TraceFile& trace, const Profile& profile, Symbols& symbols);

}  // namespace hinterland::trace
