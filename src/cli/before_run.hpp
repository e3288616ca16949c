// What `run`, `trace` and `compare` try out before a program starts, so that what is wrong is said by the command and
// not by the program. Errors are of the environment, with what mends them.
#pragma once

#include <string>

#include "base/error.hpp"
#include "cli/command_line.hpp"

namespace hinterland::cli {

// Opens the device once and lets go of it. Blocks for a connection, at most --timeout.
Status check_device(const CommandLine& line, const std::string& url);
// That there is the policy that --policy names, and that a plug-in does what a policy must (src/policy/plugin.hpp).
Status check_policy(const CommandLine& line);
// That the kernel can do what --catch needs, where it is given.
Status check_catching(const CommandLine& line);
// That userfaultfd is permitted, and that the limits leave room for --window.
Status check_system(const CommandLine& line);

}  // namespace hinterland::cli
