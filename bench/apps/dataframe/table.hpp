// A table: columns of equal length, each in one piece of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dataframe {

// Leaves the elements of a new vector as they are: who makes one fills it, and zeros would be written to all of it
// first.
template <typename T>
struct Unfilled : std::allocator<T> {
  template <typename Other>
  struct rebind {
    using other = Unfilled<Other>;
  };
  template <typename Element>
  void construct(Element* place) noexcept {
    ::new (static_cast<void*>(place)) Element;
  }
  template <typename Element, typename... Arguments>
  void construct(Element* place, Arguments&&... arguments) {
    ::new (static_cast<void*>(place)) Element(std::forward<Arguments>(arguments)...);
  }
};

template <typename T>
using Column = std::vector<T, Unfilled<T>>;

using Time = std::int64_t;  // seconds since 1970, by the clocks of New York
using Small = std::int8_t;  // a flag's letter, an hour, a day, a month
using AnyColumn = std::variant<Column<std::int32_t>, Column<Time>, Column<Small>, Column<double>>;

inline std::size_t rows_of(const AnyColumn& column) {
  return std::visit([](const auto& values) { return values.size(); }, column);
}

class Table {
 public:
  struct Named {
    std::string name;
    AnyColumn values;
  };

  std::size_t rows() const { return columns_.empty() ? 0 : rows_of(columns_.front().values); }
  const std::vector<Named>& columns() const { return columns_; }

  // Throws std::out_of_range where there is none of this name and type.
  template <typename T>
  const Column<T>& get(std::string_view name) const {
    for (const Named& column : columns_)
      if (column.name == name)
        if (const auto* values = std::get_if<Column<T>>(&column.values)) return *values;
    throw std::out_of_range("the table has no such column '" + std::string(name) + "'");
  }
  // Throws std::length_error where it has another number of rows than those that are there.
  void add(std::string name, AnyColumn values) {
    if (!columns_.empty() && rows_of(values) != rows())
      throw std::length_error("column '" + name + "' has another length than the table");
    columns_.push_back({std::move(name), std::move(values)});
  }

  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const Named& column : columns_)
      sum += std::visit([](const auto& values) { return values.size() * sizeof values[0]; }, column.values);
    return sum;
  }

 private:
  std::vector<Named> columns_;
};

}  // namespace dataframe
