// Inside of dataframe.hpp: groups of rows, what is computed of them, and what the columns of a frame are called.
//
// Rows are grouped by a table of groups while these are few, in the order of rows. Where there are more, rows are
// sorted by group first, so that memory is gone through in order in either case. Both give the same bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "hinterland/column_order.hpp"

namespace hl::far {

// What is computed of each group. Of what is not a number (NaN): least and greatest pass over it, and it comes last
// for the median; sums and means are none, either. The median of an even number is the lower of the two in the
// middle.
enum class aggregate {
  count,   // rows of the group, int64
  sum,     // int64 or uint64, or std::overflow_error; of floating-point numbers double
  mean,    // double
  min,     // an element, as the two below
  max,     // the same; of no numbers NaN
  median,  // the same; sorts all rows
};
struct aggregation {
  aggregate what;
  std::string of{};  // the column; none for count
  std::string as{};  // the name of the new column; by default as "mean(fare)"
};

namespace inside {

inline void check_numbers(const std::string& name, const any_column& values) {
  std::visit(
      [&name]<typename T>(const column<T>&) {
        if constexpr (!is_number<T>)
          throw std::invalid_argument("hl::far::dataframe::group_by: column '" + name + "' has " + kind_name<T>() +
                                      " elements; only its rows can be counted");
      },
      values);
}

// --- groups ------------------------------------------------------------------------------------------------------

inline constexpr std::size_t groups_in_table = 65536;

struct grouping {
  column<std::uint64_t> keys;               // of each group, ascending
  column<std::uint64_t> group;              // of each row, in the order in which rows are gone through
  std::optional<column<std::uint64_t>> to;  // where each row is in that order; nothing: where it is in the frame
  column<std::uint64_t> rows;               // how many each group has
};

inline void count_rows(grouping& made) {
  made.rows.resize(made.keys.size());
  each_row(made.group.size(), [&made](std::size_t row) { ++made.rows[made.group[row]]; }, made.group);
}

// Nothing when there are more than `most` groups.
template <typename KeyAt, typename T>
std::optional<grouping> grouped_by_table(KeyAt&& key_at, const column<T>& read, std::size_t most) {
  grouping made;
  made.group.resize(read.size());
  std::unordered_map<std::uint64_t, std::uint64_t> numbers;
  std::uint64_t last_key = 0, last = 0;
  for (std::size_t row = 0; row < read.size(); ++row) {
    if (row % block_rows == 0) ahead(read, row + block_rows);
    const std::uint64_t key = key_at(row);
    if (row == 0 || key != last_key) {
      last = numbers.try_emplace(key, numbers.size()).first->second;
      last_key = key;
      if (numbers.size() > most) return std::nullopt;
    }
    made.group[row] = last;
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sorted(numbers.begin(), numbers.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::uint64_t> ranks(sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    made.keys.push_back(sorted[i].first);
    ranks[sorted[i].second] = i;
  }
  each_row(read.size(), [&](std::size_t row) { made.group[row] = ranks[made.group[row]]; }, made.group);
  return made;
}
inline grouping grouped_by_order(const any_column& by) {
  const column<sort_item> items = sorted_rows(by, false);
  grouping made;
  made.group.resize(items.size());
  each_row(
      items.size(),
      [&](std::size_t i) {
        if (i == 0 || items[i].key != items[i - 1].key) made.keys.push_back(items[i].key);
        made.group[i] = made.keys.size() - 1;
      },
      items);
  made.to = places(items);
  return made;
}
inline grouping grouped(const any_column& by, std::size_t most = groups_in_table) {
  std::optional<grouping> made =
      with_keys(by, [most](auto key_at, const auto& read) { return grouped_by_table(key_at, read, most); });
  if (!made) made = grouped_by_order(by);
  count_rows(*made);
  return std::move(*made);
}

// --- what is computed of groups ------------------------------------------------------------------------------------

// Of one group, while its rows are gone through. All bytes are zero at first.
template <typename T>
struct folded {
  std::conditional_t<std::is_floating_point_v<T>, double, detail::wide> sum;
  T least, greatest;
  std::uint64_t numbers;

  void add(T value) {
    sum += value;
    if (value != value) return;
    if (numbers == 0 || value < least) least = value;
    if (numbers == 0 || greatest < value) greatest = value;
    ++numbers;
  }
};

template <typename T>
column<folded<T>> fold(const grouping& groups, const column<T>& values) {
  column<folded<T>> made(groups.keys.size());
  each_row(values.size(), [&](std::size_t row) { made[groups.group[row]].add(values[row]); }, groups.group, values);
  return made;
}

template <typename T>
any_column sums(const std::string& of, const column<folded<T>>& all) {
  if constexpr (std::is_floating_point_v<T>) {
    return transform([](const folded<T>& each) { return each.sum; }, all);
  } else {
    using total = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return transform(
        [&of](const folded<T>& each) {
          const auto sum = static_cast<total>(each.sum);
          if (each.sum != static_cast<detail::wide>(sum))
            throw std::overflow_error("hl::far::dataframe::group_by: a group's sum of column '" + of +
                                      "' does not fit in 64 bits; make it double with transform()");
          return sum;
        },
        all);
  }
}

template <typename T>
any_column medians(const grouping& groups, const column<T>& values) {
  column<sort_item> items(values.size());
  each_row(
      values.size(), [&](std::size_t row) { items[row] = {groups.group[row], sort_key(values[row])}; }, groups.group,
      values);
  sort_items(items);
  std::size_t first = 0;
  return transform(
      [&](std::uint64_t rows) {
        const std::size_t middle = first + (rows - 1) / 2;
        first += rows;
        return value_of_key<T>(items[middle].row);
      },
      groups.rows);
}

template <typename T>
any_column one_of(const aggregation& what, const grouping& groups, const column<T>& values,
                  const column<folded<T>>& all) {
  static constexpr T none = std::numeric_limits<T>::quiet_NaN();  // 0 of integers, of which there are always some
  switch (what.what) {
    case aggregate::sum:
      return sums(what.of, all);
    case aggregate::mean:
      return transform([](const folded<T>& each,
                          std::uint64_t rows) { return static_cast<double>(each.sum) / static_cast<double>(rows); },
                       all, groups.rows);
    case aggregate::min:
      return transform([](const folded<T>& each) { return each.numbers != 0 ? each.least : none; }, all);
    case aggregate::max:
      return transform([](const folded<T>& each) { return each.numbers != 0 ? each.greatest : none; }, all);
    default:
      return medians(groups, values);
  }
}

struct aggregated_column {
  std::string of, name;
  any_column values;
};

inline std::string name_of(const aggregation& what) {
  static constexpr const char* names[] = {"count", "sum", "mean", "min", "max", "median"};
  if (!what.as.empty()) return what.as;
  const std::string name = names[static_cast<std::size_t>(what.what)];
  return what.what == aggregate::count ? name : name + "(" + what.of + ")";
}

// All of `what` that are of one column, into `made`.
template <typename T>
void aggregate_one(const grouping& groups, const std::vector<aggregation>& what, const column<T>& in_frame,
                   const std::string& of, std::vector<aggregated_column>& made) {
  if constexpr (is_number<T>) {
    std::optional<column<T>> in_order;
    if (groups.to) in_order = moved(in_frame, *groups.to);
    const column<T>& values = in_order ? *in_order : in_frame;
    const column<folded<T>> all = fold(groups, values);
    for (std::size_t i = 0; i < what.size(); ++i)
      if (what[i].of == of && what[i].what != aggregate::count) made[i].values = one_of(what[i], groups, values, all);
  }
}

// column_of(name) is the frame's column.
template <typename ColumnOf>
std::vector<aggregated_column> aggregated(const grouping& groups, const std::vector<aggregation>& what,
                                          ColumnOf&& column_of) {
  std::vector<aggregated_column> made;
  for (const aggregation& each : what) made.push_back({each.of, name_of(each), {}});
  for (std::size_t i = 0; i < what.size(); ++i) {
    if (what[i].what == aggregate::count) {
      made[i].values = transform([](std::uint64_t rows) { return static_cast<std::int64_t>(rows); }, groups.rows);
    } else if (size_of(made[i].values) == 0) {
      std::visit([&](const auto& values) { aggregate_one(groups, what, values, what[i].of, made); },
                 *column_of(what[i].of));
    }
  }
  return made;
}

}  // namespace inside

}  // namespace hl::far
