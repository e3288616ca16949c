// `hinterland trace --sizes`: the same program with several shares of its memory local, to see whether the lines that
// fault stay the same. (Eden 2.3)
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.hpp"

namespace hinterland::cli {

// "10,25,50": percents, 1 to 100, up to ten of them.
Result<std::vector<unsigned>> sizes_of(const std::string& list);

// Runs the program once as it is, for its peak memory, and once traced for each size; its output is that of the first
// run. Returns the exit status for main.
int trace_sizes(CommandLine& line, const std::string& path, const std::string& library);

}  // namespace hinterland::cli
