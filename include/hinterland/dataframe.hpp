// Data frames: tables of named columns in far memory, for analyses of more than fits into local memory (AIFM, OSDI
// 2020, 8.1.2; docs/dataframe.md).
//
//     hl::far::dataframe trips = hl::far::read_csv("trips.csv", {...});         // csv.hpp
//     trips.set("hours", hl::far::transform(hours, trips.get<std::int64_t>("from"), trips.get<std::int64_t>("to")));
//     hl::far::dataframe dear = trips.where("fare", hl::far::compare::greater, 100);
//     std::optional<double> middle = hl::far::median(dear.get<double>("fare"));
//     trips.sort_by("hours");
//     hl::far::dataframe by_day = trips.group_by("day", {{aggregate::count}, {aggregate::mean, "fare"}});
//
// Columns have integers and floating-point numbers of 4 or 8 bytes, bool, or text (column.hpp); times are int64. All
// operations go through memory in order, some MiB at a time, and their results do not depend on where memory was.
// Where pages are at a server that computes (offload.hpp), where() finds and gathers rows there, and so do the
// functions of offload.hpp over columns.
//
// Frames move; copy() copies. Threads: as containers of the standard library. Blocks while pages are brought. Errors:
// std::invalid_argument that names the column and says what is there, before anything is changed;
// std::overflow_error; as column.hpp. C++20, for GCC and Clang on x86-64.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "hinterland/column.hpp"
#include "hinterland/column_kinds.hpp"
#include "hinterland/column_order.hpp"
#include "hinterland/dataframe_groups.hpp"
#include "hinterland/dataframe_join.hpp"

namespace hl::far {

enum class order { ascending, descending };

class dataframe {
 public:
  dataframe() = default;
  dataframe(dataframe&&) noexcept = default;
  dataframe& operator=(dataframe&&) noexcept = default;
  dataframe copy() const { return slice(0, rows()); }

  std::size_t rows() const noexcept { return columns_.empty() ? 0 : inside::size_of(columns_.front().values); }
  std::size_t columns() const noexcept { return columns_.size(); }
  // In the order in which they came.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const named& each : columns_) all.push_back(each.name);
    return all;
  }
  bool contains(std::string_view name) const noexcept { return find(name) != columns_.size(); }

  // A column, whose elements are T: get<double>("fare"), get<hl::far::text>("flag").
  template <typename T>
  const column<T>& get(std::string_view name) const {
    const any_column& values = get_any(name);
    if (const auto* typed = std::get_if<column<T>>(&values)) return *typed;
    throw std::invalid_argument("hl::far::dataframe::get: column '" + std::string(name) + "' has " +
                                inside::kind_of(values) + " elements, not " + inside::kind_name<T>());
  }
  // Its elements, to be written.
  template <typename T>
  std::span<T> get_mut(std::string_view name) {
    return const_cast<column<T>&>(get<T>(name));
  }
  const any_column& get_any(std::string_view name) const { return columns_[position(name)].values; }

  // A new column, or other values of one that is there. It has as many elements as the frame has rows; those of a
  // frame without other columns may be any number.
  void set(std::string name, any_column values) {
    const std::size_t at = find(name), size = inside::size_of(values);
    const bool alone = columns_.empty() || (columns_.size() == 1 && at == 0);
    if (!alone && size != rows())
      throw std::invalid_argument("hl::far::dataframe::set: column '" + name + "' has " + std::to_string(size) +
                                  " elements, and the frame " + std::to_string(rows()) + " rows");
    if (at == columns_.size())
      columns_.push_back({std::move(name), std::move(values)});
    else
      columns_[at].values = std::move(values);
  }
  void erase(std::string_view name) {
    columns_.erase(columns_.begin() + static_cast<std::ptrdiff_t>(position(name)));
  }

  // The rows whose element of the column is `how` to `with`, in their order. `with` is a number for a column of
  // numbers (of integers one that the type has), bool for bool, a string for text.
  template <typename With>
  dataframe where(std::string_view name, compare how, const With& with) const {
    return std::visit([&](const auto& typed) { return where_typed(name, typed, how, with); }, get_any(name));
  }
  // The rows for which `which` is true: where(transform([](double a, double b) { return a > b; }, x, y)).
  dataframe where(const column<bool>& which) const {
    if (which.size() != rows())
      throw std::invalid_argument("hl::far::dataframe::where: " + std::to_string(which.size()) +
                                  " truth values for " + std::to_string(rows()) + " rows");
    return where_true([&which](std::size_t row) { return which[row]; }, which);
  }
  // Rows first, first + 1, ...: `count` of them, or as many as there are.
  dataframe slice(std::size_t first, std::size_t count) const {
    first = std::min(first, rows());
    count = std::min(count, rows() - first);
    dataframe made;
    for (const named& each : columns_)
      made.columns_.push_back({each.name, inside::part_of(each.values, first, count)});
    return made;
  }

  // Rows in the order of a column; rows that are equal there stay in their order, so that sorting by one column after
  // the other sorts by several, the last first. What is not a number (NaN) comes last, or, descending, first. Needs
  // as much far memory again meanwhile, and at most 48 bytes a row.
  void sort_by(std::string_view name, order how = order::ascending) {
    const column<std::uint64_t> to = inside::places(inside::sorted_rows(get_any(name), how == order::descending));
    std::vector<named> made;
    for (const named& each : columns_) made.push_back({each.name, inside::moved(each.values, to)});
    columns_ = std::move(made);
  }

  // A row for each distinct element of the column `by`, ascending: that column, and one for each of `what`. What is
  // not a number (NaN) is one element, the last. Any number of groups; needs 56 bytes of far memory a row meanwhile.
  dataframe group_by(std::string_view by, const std::vector<aggregation>& what) const {
    const any_column& keys = get_any(by);
    for (const aggregation& each : what)
      if (each.what != aggregate::count) inside::check_numbers(each.of, get_any(each.of));
    const inside::grouping groups = inside::grouped(keys);
    dataframe made;
    made.set(std::string(by), inside::from_keys(keys, groups.keys));
    for (inside::aggregated_column& each :
         inside::aggregated(groups, what, [this](const std::string& of) { return &get_any(of); })) {
      if (made.contains(each.name))
        throw std::invalid_argument("hl::far::dataframe::group_by: two columns would be called '" + each.name +
                                    "': give one another name, as {aggregate::mean, \"fare\", \"mean_fare\"}");
      made.set(std::move(each.name), std::move(each.values));
    }
    return made;
  }

  // Each row whose element of column `by` is in the column of the same name of `other`, with the other columns of
  // that row of `other`, whose elements there are all different. What `other` has there is kept in ordinary memory,
  // some 50 bytes a row, and its rows are read in any order: it is the smaller one.
  dataframe join(const dataframe& other, std::string_view by) const;

 private:
  struct named {
    std::string name;
    any_column values;
  };

  std::size_t find(std::string_view name) const noexcept {
    std::size_t at = 0;
    while (at < columns_.size() && columns_[at].name != name) ++at;
    return at;
  }
  std::size_t position(std::string_view name) const {
    const std::size_t at = find(name);
    if (at < columns_.size()) return at;
    std::string all;
    for (const named& each : columns_) all += (all.empty() ? "" : ", ") + each.name;
    throw std::invalid_argument("hl::far::dataframe: there is no column '" + std::string(name) +
                                "'; there are: " + (all.empty() ? "none" : all));
  }

  // choose(first, count) gives those of the rows that are wanted, counted from `first`, in order; all together,
  // `all`.
  template <typename Choose>
  dataframe chosen(std::size_t all, Choose&& choose) const {
    dataframe made;
    for (const named& each : columns_) {
      made.columns_.push_back({each.name, inside::empty_like(each.values)});
      inside::reserve(made.columns_.back().values, all);
    }
    const std::size_t size = rows();
    for (std::size_t first = 0; first < size && all != 0; first += inside::select_rows) {
      const std::size_t count = std::min(inside::select_rows, size - first);
      const std::vector<std::size_t> rows_chosen = choose(first, count);
      for (std::size_t i = 0; i < columns_.size(); ++i)
        inside::append_chosen(made.columns_[i].values, columns_[i].values, first, count, rows_chosen);
    }
    return made;
  }
  template <typename Is, typename T>
  dataframe where_true(Is&& is, const column<T>& read) const {
    std::size_t all = 0;
    inside::each_row(read.size(), [&](std::size_t row) { all += is(row) ? 1 : 0; }, read);
    return chosen(all, [&](std::size_t first, std::size_t count) {
      std::vector<std::size_t> rows_chosen;
      for (std::size_t i = 0; i < count; ++i) {
        if (i % inside::block_rows == 0) inside::ahead(read, first + i + inside::block_rows);
        if (is(first + i)) rows_chosen.push_back(i);
      }
      return rows_chosen;
    });
  }

  template <typename T, typename With>
  dataframe where_typed(std::string_view name, const column<T>& values, compare how, const With& with) const {
    if constexpr (std::is_same_v<T, text> && std::is_convertible_v<With, std::string_view>) {
      std::vector<bool> wanted(values.distinct_max());
      for (std::uint32_t code = 0; code < wanted.size(); ++code)
        wanted[code] = inside::compares(how, values.word(code), std::string_view(with));
      const std::uint32_t* const codes = values.codes().data();
      return where_true([&wanted, codes](std::size_t row) { return wanted[codes[row]]; }, values);
    } else if constexpr (std::is_same_v<T, bool> && std::is_same_v<With, bool>) {
      return where_true([&](std::size_t row) { return inside::compares(how, values[row], with); }, values);
    } else if constexpr (inside::is_number<T> && std::is_arithmetic_v<With> && !std::is_same_v<With, bool>) {
      const T operand = inside::operand<T>(name, with);
      return chosen(count(values, how, operand), [&](std::size_t first, std::size_t n) {
        return filter(std::span(values).subspan(first, n), how, operand);
      });
    } else {
      throw std::invalid_argument("hl::far::dataframe::where: column '" + std::string(name) + "' has " +
                                  inside::kind_name<T>() + " elements, and is compared with something else");
    }
  }

  std::vector<named> columns_;
};

inline dataframe dataframe::join(const dataframe& other, std::string_view by) const {
  const any_column& keys = get_any(by);
  for (const named& each : other.columns_)
    if (each.name != by && contains(each.name))
      throw std::invalid_argument("hl::far::dataframe::join: both frames have a column '" + each.name +
                                  "': erase it from one, or set it under another name");
  const inside::partners found = inside::partners_of(by, keys, other.get_any(by));
  dataframe made = where(found.has);
  for (const named& each : other.columns_)
    if (each.name != by) made.columns_.push_back({each.name, inside::rows_of(each.values, found.rows)});
  return made;
}

}  // namespace hl::far
