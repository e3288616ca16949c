// The nearest valid name to one that is not valid, for messages that say "did you mean".
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace hinterland {

// Fewest insertions, deletions, replacements and swaps of neighbours that turn one text into the other, case ignored
// (optimal string alignment; Damerau 1964, "A technique for computer detection and correction of spelling errors").
std::size_t edit_distance(std::string_view left, std::string_view right);

// The name with the smallest edit distance, the first of equals; "" when none is near enough to be meant: more than
// a third of the longer of both would have to change (but one edit is always near enough, except for single letters).
std::string_view nearest_name(std::string_view given, std::span<const std::string_view> names);
inline std::string_view nearest_name(std::string_view given, std::initializer_list<std::string_view> names) {
  return nearest_name(given, std::span(names.begin(), names.size()));
}

// "did you mean 'tcp'?" when a name is near, else "valid are mem, zmem, file": the remedy of an Error.
std::string suggestion(std::string_view given, std::span<const std::string_view> names);
inline std::string suggestion(std::string_view given, std::initializer_list<std::string_view> names) {
  return suggestion(given, std::span(names.begin(), names.size()));
}

}  // namespace hinterland
