// Results that a command writes into files.
#pragma once

#include <string>

#include "base/error.hpp"

namespace hinterland::cli {

// "-" is standard output. Nothing that exists is overwritten without `force`.
Status write_file(const std::string& path, const std::string& bytes, bool force);

}  // namespace hinterland::cli
