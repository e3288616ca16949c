// Where the library is that `run` puts under a program.
#pragma once

#include <string>

#include "base/error.hpp"

namespace hinterland::cli {

// Found relative to this executable, so that the build tree and any place of installation work alike.
Result<std::string> find_preload_library();

// LD_PRELOAD with the library first and what was there kept; no library twice.
std::string preload_list(const std::string& library, const char* existing);

}  // namespace hinterland::cli
