// What can be done with columns: each operation goes through them block by block, on a team of threads or fibers.
// Results do not depend on how many these are. All hints of the library are here, one for each stream of accesses.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "common/blocks.hpp"
#include "common/fiber_team.hpp"
#include "dataframe/table.hpp"
#include "hinterland/hint.hpp"

namespace dataframe {

using apps::Block;

inline constexpr std::size_t kRows = apps::kBlockBytes / sizeof(double);  // of a block

// Who does the work.
class Crew {
 public:
  explicit Crew(const apps::Settings& settings) : settings_(settings) {}

  template <typename Body>
  void on_blocks(std::size_t rows, Body&& body) const {
    const unsigned members = apps::members(settings_);
    apps::on_team(settings_, [&](unsigned i) { apps::for_blocks(rows, kRows, i, members, body); });
  }
  // body(i) for i of [0, count): whoever is free does the next.
  template <typename Body>
  void on_each(std::size_t count, Body&& body) const {
    std::atomic<std::size_t> next{0};
    apps::on_team(settings_, [&](unsigned) {
      for (std::size_t i; (i = next.fetch_add(1)) < count;) body(i);
    });
  }

 private:
  const apps::Settings& settings_;
};

// What `part(block)` returns, for each block, in order; it reads these columns.
template <typename Part, typename First, typename... Others>
auto for_each_block(const Crew& crew, Part part, const Column<First>& first, const Column<Others>&... others) {
  std::vector<std::invoke_result_t<Part, const Block&>> parts(apps::blocks_of(first.size(), kRows));
  auto announce = [](const Block& block, const auto& column) {
    hl::hint(&column[block.first], {.size = block.count * sizeof column[0]});
  };
  auto give_up = [](const Block& block, const auto& column) {
    hl::cold(&column[block.first], block.count * sizeof column[0]);
  };
  crew.on_blocks(first.size(), [&](const Block& block) {
    announce(block, first);
    (announce(block, others), ...);
    parts[block.number] = part(block);
    give_up(block, first);
    (give_up(block, others), ...);
  });
  return parts;
}

// A new column: function(input[i]...).
template <typename Function, typename First, typename... Others>
auto computed(const Crew& crew, Function function, const Column<First>& first, const Column<Others>&... others) {
  Column<std::invoke_result_t<Function, First, Others...>> result(first.size());
  auto fill = [&](const Block& block) {
    for (std::size_t row = block.first; row < block.first + block.count; ++row)
      result[row] = function(first[row], others[row]...);
    return true;
  };
  for_each_block(crew, fill, first, others...);
  return result;
}

template <typename T>
struct Range {
  T least{}, largest{};
  T sum{};
};

// Not of an empty column. The sum is of block after block.
template <typename T>
Range<T> range_of(const Crew& crew, const Column<T>& column) {
  auto look = [&](const Block& block) {
    auto [least, largest] = std::minmax_element(&column[block.first], &column[block.first] + block.count);
    return Range<T>{*least, *largest, std::accumulate(&column[block.first], &column[block.first] + block.count, T{})};
  };
  std::vector<Range<T>> parts = for_each_block(crew, look, column);
  Range<T> all = parts.at(0);
  for (std::size_t i = 1; i < parts.size(); ++i)
    all = {std::min(all.least, parts[i].least), std::max(all.largest, parts[i].largest), all.sum + parts[i].sum};
  return all;
}

// How often each value occurs; they must be of [0, 256).
using Counts = std::array<std::uint64_t, 256>;

template <typename T>
std::vector<Counts> counts_by_block(const Crew& crew, const Column<T>& column) {
  auto look = [&](const Block& block) {
    Counts counts{};
    for (std::size_t row = block.first; row < block.first + block.count; ++row) {
      if (static_cast<std::make_unsigned_t<T>>(column[row]) >= counts.size() || column[row] < 0)
        throw std::out_of_range("a value that is to be counted is not of 0 to 255: " + std::to_string(column[row]));
      ++counts[static_cast<std::size_t>(column[row])];
    }
    return counts;
  };
  return for_each_block(crew, look, column);
}

template <typename T>
Counts counts_of(const Crew& crew, const Column<T>& column) {
  Counts all{};
  for (const Counts& part : counts_by_block(crew, column))
    for (std::size_t value = 0; value < all.size(); ++value) all[value] += part[value];
  return all;
}

// Rows that were chosen: of each block, how far from its beginning.
using Selection = std::vector<Column<std::uint32_t>>;

template <typename T, typename Predicate>
Selection where(const Crew& crew, const Column<T>& column, Predicate chosen) {
  auto look = [&](const Block& block) {
    Column<std::uint32_t> rows(block.count);
    hl::hint(rows.data(), {.mut = true, .size = block.count * sizeof rows[0]});
    std::size_t count = 0;
    for (std::uint32_t row = 0; row < block.count; ++row) {
      rows[count] = row;
      count += chosen(column[block.first + row]);
    }
    rows.resize(count);
    return rows;
  };
  return for_each_block(crew, look, column);
}

// The chosen rows of a column. `places`: where in the result each block's rows begin, and the end.
template <typename T>
Column<T> taken(const Crew& crew, const Column<T>& column, const Selection& selection,
                const std::vector<std::size_t>& places) {
  Column<T> result(places.back());
  crew.on_blocks(column.size(), [&](const Block& block) {
    const Column<std::uint32_t>& rows = selection[block.number];
    if (rows.empty()) return;
    const T* from = &column[block.first];
    T* to = &result[places[block.number]];
    hl::hint(rows.data(), {.size = rows.size() * sizeof rows[0]});
    hl::hint(from + rows.front(), {.size = (rows.back() - rows.front() + 1) * sizeof(T)});
    hl::hint(to, {.mut = true, .size = rows.size() * sizeof(T)});
    for (std::uint32_t row : rows) *to++ = from[row];
    hl::cold(from + rows.front(), (rows.back() - rows.front() + 1) * sizeof(T));
  });
  return result;
}

// A table of the chosen rows.
inline Table taken(const Crew& crew, const Table& table, const Selection& selection) {
  std::vector<std::size_t> places = {0};
  for (const Column<std::uint32_t>& rows : selection) places.push_back(places.back() + rows.size());
  Table result;
  for (const Table::Named& column : table.columns())
    std::visit([&](const auto& values) { result.add(column.name, taken(crew, values, selection, places)); },
               column.values);
  return result;
}

template <typename T>
double median_of(T* begin, T* end) {
  hl::hint(begin, {.mut = true, .size = static_cast<std::size_t>(end - begin) * sizeof(T)});
  T* middle = begin + (end - begin) / 2;
  std::nth_element(begin, middle, end);
  if ((end - begin) % 2 != 0) return static_cast<double>(*middle);
  return (static_cast<double>(*middle) + static_cast<double>(*std::max_element(begin, middle))) / 2;
}

struct Grouped {
  std::uint64_t count = 0;
  double median = 0;
};

// The median of the values of each key. Values go to their group in one pass, which reads and writes in order.
template <typename Key, typename T>
std::array<Grouped, 256> medians_by(const Crew& crew, const Column<Key>& keys, const Column<T>& values) {
  std::vector<Counts> places = counts_by_block(crew, keys);  // of each block and key: how many, then where to
  std::array<Grouped, 256> result{};
  std::array<std::size_t, 257> ends{};
  std::size_t place = 0;
  for (std::size_t key = 0; key < result.size(); ++key) {
    ends[key] = place;
    for (Counts& block : places) {
      result[key].count += block[key];
      place += std::exchange(block[key], place);
    }
  }
  ends.back() = place;
  Column<T> grouped(values.size());
  auto scatter = [&](const Block& block) {
    Counts next = places[block.number];
    for (std::size_t row = block.first; row < block.first + block.count; ++row)
      grouped[next[static_cast<std::size_t>(keys[row])]++] = values[row];
    return true;
  };
  for_each_block(crew, scatter, keys, values);
  crew.on_each(result.size(), [&](std::size_t key) {
    if (result[key].count != 0) result[key].median = median_of(&grouped[ends[key]], &grouped[0] + ends[key + 1]);
  });
  return result;
}

}  // namespace dataframe
