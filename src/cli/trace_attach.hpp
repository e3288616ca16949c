// hinterland trace --attach: records a program that runs already.
#pragma once

#include "cli/command_line.hpp"

namespace hinterland::cli {

// Blocks until the recording ends. An exit status.
int trace_attached(const CommandLine& line);

}  // namespace hinterland::cli
