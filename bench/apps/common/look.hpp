// A look from outside at this process, in the middle of its run.
#pragma once

#include <string>

namespace apps {

// What `sh -c command` prints. It runs without what is preloaded here, so that looking at far memory does not use
// any; $PPID is this process. Blocks until it has ended. Throws std::runtime_error when it fails.
std::string output_of(const std::string& command);

}  // namespace apps
