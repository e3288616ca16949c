// Hints as a change to source files: a unified diff for `patch -p1`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "advice/hint_text.hpp"
#include "advice/source_text.hpp"

namespace hinterland::trace {

// The text with the insertions; of several at one place the first is first.
std::string with_insertions(const SourceText& source, std::vector<Insertion> insertions);

// "" when both are the same. `name` is the path behind a/ and b/. Only for texts that differ by insertions within and
// between lines.
std::string unified_diff(const std::string& name, const SourceText& before, const std::vector<Insertion>& insertions);

}  // namespace hinterland::trace
