// Inside of dataframe.hpp: which row of another frame belongs to each row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>

#include "hinterland/column_kinds.hpp"
#include "hinterland/column_order.hpp"

namespace hl::far::inside {

struct partners {
  column<bool> has;            // whether each row has one
  column<std::uint64_t> rows;  // of those that have, in order: its row in the other frame
};

// What elements of both columns are told apart by: of strings the number that `ours` has for them.
template <typename T>
std::optional<std::uint64_t> joint_key(const column<T>& ours, const column<T>& values, std::size_t row) {
  if constexpr (!std::is_same_v<T, text>)
    return sort_key(values[row]);
  else if (&ours == &values)
    return values.codes()[row];
  else
    return ours.code_of(values[row]);
}

template <typename T>
std::unordered_map<std::uint64_t, std::uint64_t> rows_by_key(std::string_view by, const column<T>& ours,
                                                             const column<T>& others) {
  std::unordered_map<std::uint64_t, std::uint64_t> rows;
  each_row(
      others.size(),
      [&](std::size_t row) {
        const std::optional<std::uint64_t> key = joint_key(ours, others, row);
        if (!key) return;
        if (const auto [there, is_new] = rows.try_emplace(*key, row); !is_new)
          throw std::invalid_argument("hl::far::dataframe::join: rows " + std::to_string(there->second) + " and " +
                                      std::to_string(row) + " of the other frame have the same element in column '" +
                                      std::string(by) + "': group_by() it first, or join the other way round");
      },
      others);
  return rows;
}

inline partners partners_of(std::string_view by, const any_column& ours, const any_column& others) {
  return std::visit(
      [&]<typename T>(const column<T>& typed) {
        const auto* const same = std::get_if<column<T>>(&others);
        if (same == nullptr)
          throw std::invalid_argument("hl::far::dataframe::join: column '" + std::string(by) + "' has " +
                                      kind_of(ours) + " elements here, and " + kind_of(others) +
                                      " elements in the other frame: transform() one of them");
        const auto rows = rows_by_key(by, typed, *same);
        partners found{column<bool>(typed.size()), {}};
        each_row(
            typed.size(),
            [&](std::size_t row) {
              const auto there = rows.find(*joint_key(typed, typed, row));
              if (there == rows.end()) return;
              found.has[row] = true;
              found.rows.push_back(there->second);
            },
            typed);
        return found;
      },
      ours);
}

// values[rows[i]] for each i.
template <typename T>
column<T> rows_of(const column<T>& values, const column<std::uint64_t>& rows) {
  if constexpr (std::is_same_v<T, text>) {
    return values.with_codes(rows_of(values.codes(), rows));
  } else {
    column<T> made(rows.size());
    each_block(
        rows.size(),
        [&](std::size_t first, std::size_t count) {
          const std::span<const std::uint64_t> part = std::span(rows).subspan(first, count);
          if constexpr (is_number<T>)
            gather(values, part, std::span(made).subspan(first, count));
          else
            for (std::size_t i = 0; i < count; ++i) made[first + i] = values[part[i]];
        },
        rows);
    return made;
  }
}
inline any_column rows_of(const any_column& values, const column<std::uint64_t>& rows) {
  return std::visit([&rows](const auto& typed) -> any_column { return rows_of(typed, rows); }, values);
}

}  // namespace hl::far::inside
