// A PID as an argument.
#pragma once

#include <sys/types.h>

#include <charconv>
#include <string>

#include "base/error.hpp"

namespace hinterland::cli {

inline Result<pid_t> parse_pid(const std::string& text) {
  pid_t pid = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (problem == std::errc() && end == text.data() + text.size() && pid > 0) return pid;
  Error error = Error::make(0, "'%s' is not a process id", text.c_str());
  return std::unexpected(error.remedy("'hinterland stat' lists the running programs"));
}

}  // namespace hinterland::cli
