// What --policy names: a policy that comes with Hinterland, or a plug-in, a shared library that defines
// hl_policy_plugin (include/hinterland/policy.h).
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "hinterland/policy.h"

namespace hinterland {

struct NamedPolicy {
  const hl_policy_ops* ops = nullptr;
  std::string settings;    // the text behind the colon
  bool is_plugin = false;  // lives in a library that is never unloaded
};

// `text`: NAME, NAME:SETTINGS, FILE or FILE:SETTINGS; a file's name has a slash. Loads the file into this process.
Result<NamedPolicy> policy_named(std::string_view text);

// The same text with its file's whole path, for a process that may run in another folder.
std::string policy_with_whole_path(std::string_view text);

// Asks a plug-in as the runtime would, many times, in a child process: says what is wrong with it if it crashes, does
// not return, or answers what cannot be. Blocks for some milliseconds; where a call does not return until it has
// computed for ten seconds, and where it waits for two minutes.
Status check_plugin(const NamedPolicy& policy);

}  // namespace hinterland
