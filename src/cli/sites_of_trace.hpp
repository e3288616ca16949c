// Traces where a profile of the compiler's hints is wanted.
#pragma once

#include <string>

#include "base/error.hpp"
#include "cli/command_line.hpp"

namespace hinterland::cli {

// By its first bytes; false also when it cannot be read.
bool is_trace(const std::string& path);

// The profile that the trace makes (trace/site_places.hpp).
Result<std::string> profile_of_trace(const std::string& path);

// Where --sites names a trace: writes its profile into the user's cache, and lets the option name that.
Status settle_sites(CommandLine& line);

}  // namespace hinterland::cli
