// What `hinterland advise` prints, for people and as JSON.
#pragma once

#include <string>

#include "advice/advice.hpp"
#include "cli/figures.hpp"
#include "trace/trace_file.hpp"

namespace hinterland::cli {

// `patched`: the hints are those of a patch.
std::string advice_text(const trace::TraceFile& file, const trace::AdviceReport& report, bool patched);
Json advice_json(const trace::TraceFile& file, const trace::AdviceReport& report);

}  // namespace hinterland::cli
