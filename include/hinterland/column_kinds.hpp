// Inside of dataframe.hpp: the kinds of columns that a data frame has, what they are called, and how their elements
// compare.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "hinterland/column.hpp"

namespace hl::far {

// What a data frame has columns of.
using any_column = std::variant<column<std::int32_t>, column<std::int64_t>, column<std::uint32_t>,
                                column<std::uint64_t>, column<float>, column<double>, column<bool>, column<text>>;

namespace inside {

template <typename T>
inline constexpr bool is_number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

template <typename T>
std::string kind_name() {
  if constexpr (std::is_same_v<T, text>)
    return "text";
  else if constexpr (std::is_same_v<T, bool>)
    return "bool";
  else if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? "float" : "double";
  else
    return (std::is_signed_v<T> ? "int" : "uint") + std::to_string(8 * sizeof(T));
}
inline std::string kind_of(const any_column& values) {
  return std::visit([]<typename T>(const column<T>&) { return kind_name<T>(); }, values);
}

template <typename T>
bool compares(compare how, const T& a, const T& b) {
  switch (how) {
    case compare::equal:
      return a == b;
    case compare::not_equal:
      return a != b;
    case compare::less:
      return a < b;
    case compare::less_equal:
      return a <= b;
    case compare::greater:
      return a > b;
    default:
      return a >= b;
  }
}

// `with` as an element to compare with. An integer has to be one of the column's type: otherwise what is asked for is
// most likely not what is meant.
template <typename T, typename With>
T operand(std::string_view name, With with) {
  if constexpr (!std::is_floating_point_v<T>) {
    // Has all values of both types (x86-64).
    const auto wide = static_cast<long double>(with);
    const bool fits = wide >= static_cast<long double>(std::numeric_limits<T>::min()) &&
                      wide <= static_cast<long double>(std::numeric_limits<T>::max()) && wide == std::trunc(wide);
    if (!fits)
      throw std::invalid_argument("hl::far::dataframe::where: column '" + std::string(name) + "' has " +
                                  kind_name<T>() + " elements, and " + std::to_string(with) +
                                  " is none: compare with one that is, or transform() the column");
  }
  return static_cast<T>(with);
}

}  // namespace inside

}  // namespace hl::far
