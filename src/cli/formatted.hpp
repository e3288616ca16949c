// A line of a report, as printf writes it.
#pragma once

#include <cstdio>
#include <string>

namespace hinterland::cli {

// At most 511 bytes; what is longer is cut.
template <typename... Values>
std::string formatted(const char* format, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

}  // namespace hinterland::cli
