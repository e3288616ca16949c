// Words of C and C++ that the readers of source text have in common.
#pragma once

#include <algorithm>
#include <string_view>

namespace hinterland::trace {

inline constexpr std::string_view kAssignments[] = {
    "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="};
inline constexpr std::string_view kControls[] = {"if", "while", "for", "switch"};

template <std::size_t N>
bool one_of(std::string_view word, const std::string_view (&list)[N]) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

}  // namespace hinterland::trace
