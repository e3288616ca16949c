// The configuration file: TOML, one key an option, the keys being the names of the flags.
#pragma once

#include <map>
#include <string>

#include "base/error.hpp"

namespace hinterland::cli {

struct ConfigValue {
  std::string text;    // as the flag would take it
  std::string source;  // "far.toml, line 3: local", for errors
};

// The values by option name, checked to be options that a file may hold, but not their ranges. Errors say which line.
Result<std::map<std::string, ConfigValue>> read_config_file(const std::string& path);

}  // namespace hinterland::cli
