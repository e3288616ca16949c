#include "cli/terminal.hpp"

#include <unistd.h>

#include <cstdlib>

namespace hinterland::cli {

std::string coloured(const char* colour, const std::string& text, std::size_t width) {
  static const bool wanted = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  std::string padded = text;
  if (padded.size() < width) padded.resize(width, ' ');
  return wanted ? colour + padded + "\033[0m" : padded;
}

}  // namespace hinterland::cli
