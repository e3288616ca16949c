// Where the library is that `run` puts under a program.
#pragma once

#include <string>

#include "base/error.hpp"

namespace hinterland::cli {

// Found relative to this executable, so that the build tree and any place of installation work alike.
Result<std::string> find_preload_library();

// What stands between the program and libc where faults are served by signal: preloaded behind the other.
Result<std::string> find_signal_library();

// What clang loads, which inserts hints (src/compiler).
Result<std::string> find_pass_plugin();

// LD_PRELOAD with the libraries first, which a colon separates, and what was there kept; no library twice.
std::string preload_list(const std::string& libraries, const char* existing);

}  // namespace hinterland::cli
