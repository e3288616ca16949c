// What `hinterland report` says of the hints in a trace.
#pragma once

#include <cstdint>
#include <string>

#include "cli/figures.hpp"
#include "trace/hint_profile.hpp"

namespace hinterland::cli {

std::string hints_text(const trace::HintProfile& profile, std::uint64_t top);  // "" without any
Json hints_json(const trace::HintProfile& profile, std::uint64_t top);

}  // namespace hinterland::cli
