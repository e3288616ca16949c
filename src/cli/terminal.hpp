// Colours, only on a terminal.
#pragma once

#include <string>

namespace hinterland::cli {

inline constexpr const char* kRed = "\033[31m";
inline constexpr const char* kGreen = "\033[32m";
inline constexpr const char* kYellow = "\033[33m";
inline constexpr const char* kBold = "\033[1m";

// `text` padded to `width`, in colour when stdout is a terminal and NO_COLOR is not set (no-color.org).
std::string coloured(const char* colour, const std::string& text, std::size_t width = 0);

}  // namespace hinterland::cli
