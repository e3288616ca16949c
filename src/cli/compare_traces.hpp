// Several traces of one program, side by side: which places fault in all of them.
#pragma once

#include <string>
#include <vector>

#include "cli/figures.hpp"
#include "trace/profile.hpp"

namespace hinterland::cli {

struct ComparedTrace {
  std::string path;
  std::uint64_t local_bytes = 0;
  trace::Profile profile;
};

// `what`: "line", "function", ...
std::string comparison_text(const std::vector<ComparedTrace>& traces, const std::string& what, std::uint64_t top);
Json comparison_json(const std::vector<ComparedTrace>& traces, const std::string& what, std::uint64_t top);

}  // namespace hinterland::cli
