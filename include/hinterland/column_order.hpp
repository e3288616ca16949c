// Inside of dataframe.hpp: columns in another order, and parts of them, by going through memory in order alone, so
// that what is needed local at a time is some MiB, however long the columns are.
//
// Sorting: runs of 2 MiB, each sorted where it is, are merged 64 at a time. To bring rows into a new order they are
// first spread over blocks of where they go, and then put into place within each block (a distribution sort). Both go
// through the rows some four times, and wait for no single page; a server cannot help, since it writes nothing
// (docs/adr/0068-data-frames.md).
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "hinterland/column.hpp"
#include "hinterland/column_kinds.hpp"

namespace hl::far {

namespace inside {

// --- order of elements -------------------------------------------------------------------------------------------

// Numbers in the order of elements. What is not a number (NaN) comes last; both zeros are one.
template <typename T>
std::uint64_t sort_key(T value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? 1 : 0;
  else
    return detail::key_of(value == T{} ? T{} : value);
}
template <typename T>
T value_of_key(std::uint64_t key) {
  if constexpr (std::is_same_v<T, bool>)
    return key != 0;
  else
    return detail::value_of<T>(static_cast<decltype(detail::key_of(T{}))>(key));
}

// Codes in the order of their strings.
inline std::vector<std::uint32_t> codes_in_order(const column<text>& values) {
  std::vector<std::uint32_t> codes(values.distinct_max());
  std::iota(codes.begin(), codes.end(), 0u);
  std::sort(codes.begin(), codes.end(),
            [&values](std::uint32_t a, std::uint32_t b) { return values.word(a) < values.word(b); });
  return codes;
}

// Calls visit(key_at, read): key_at(row) is the row's key, `read` the column that it is read from.
template <typename Visit>
decltype(auto) with_keys(const any_column& values, Visit&& visit) {
  return std::visit(
      [&visit]<typename T>(const column<T>& typed) -> decltype(auto) {
        if constexpr (std::is_same_v<T, text>) {
          const std::vector<std::uint32_t> codes = codes_in_order(typed);
          std::vector<std::uint64_t> ranks(codes.size());
          for (std::size_t rank = 0; rank < codes.size(); ++rank) ranks[codes[rank]] = rank;
          const std::uint32_t* const of_row = typed.codes().data();
          return visit([&ranks, of_row](std::size_t row) { return ranks[of_row[row]]; }, typed.codes());
        } else {
          const T* const elements = typed.data();
          return visit([elements](std::size_t row) { return sort_key(elements[row]); }, typed);
        }
      },
      values);
}

// Elements of the kind that `like` has, by their keys.
inline any_column from_keys(const any_column& like, const column<std::uint64_t>& keys) {
  return std::visit(
      [&keys]<typename T>(const column<T>& typed) -> any_column {
        if constexpr (std::is_same_v<T, text>) {
          const std::vector<std::uint32_t> codes = codes_in_order(typed);
          return typed.with_codes(transform([&codes](std::uint64_t key) { return codes[key]; }, keys));
        } else {
          return transform([](std::uint64_t key) { return value_of_key<T>(key); }, keys);
        }
      },
      like);
}

// --- sorting -----------------------------------------------------------------------------------------------------

struct sort_item {
  std::uint64_t key, row;
  friend auto operator<=>(const sort_item&, const sort_item&) = default;
};
inline constexpr std::size_t run_items = std::size_t{1} << 17;  // 2 MiB
inline constexpr std::size_t runs_at_once = 64;
inline constexpr std::size_t ahead_items = 1024;  // of each run: 16 KiB

// Some sorted runs, of which the least item is taken again and again: a heap of what comes next in each.
class merging {
 public:
  void add(const sort_item* first, const sort_item* last) {
    if (first == last) return;
    hl_prefetch(first, std::min<std::size_t>(ahead_items, static_cast<std::size_t>(last - first)) * sizeof *first);
    runs_.push_back({first, last, first});
  }
  void begin() {
    for (std::size_t i = runs_.size(); i-- > 0;) sink(i);
  }
  bool empty() const { return runs_.empty(); }
  sort_item take() {
    run& least = runs_.front();
    // What was asked for is used from here on: ask for as much behind it.
    if (least.at == least.asked) {
      const std::size_t left = static_cast<std::size_t>(least.last - least.at);
      if (left > ahead_items)
        hl_prefetch(least.at + ahead_items, std::min(ahead_items, left - ahead_items) * sizeof(sort_item));
      least.asked += std::min(ahead_items, left);
    }
    const sort_item taken = *least.at++;
    if (least.at == least.last) {
      least = runs_.back();
      runs_.pop_back();
    }
    if (!runs_.empty()) sink(0);
    return taken;
  }

 private:
  struct run {
    const sort_item *at, *last, *asked;
  };
  void sink(std::size_t at) {
    const run moved = runs_[at];
    for (;;) {
      std::size_t below = 2 * at + 1;
      if (below >= runs_.size()) break;
      if (below + 1 < runs_.size() && *runs_[below + 1].at < *runs_[below].at) ++below;
      if (*moved.at < *runs_[below].at) break;
      runs_[at] = runs_[below];
      at = below;
    }
    runs_[at] = moved;
  }
  std::vector<run> runs_;
};

// Ascending; of the same key by row. Needs as much far memory again.
inline void sort_items(column<sort_item>& items, std::size_t run = run_items, std::size_t at_once = runs_at_once) {
  const std::size_t size = items.size();
  for (std::size_t first = 0; first < size; first += run)
    std::sort(items.begin() + first, items.begin() + std::min(first + run, size));
  if (size <= run) return;
  column<sort_item> merged(size);
  for (; run < size; run *= at_once) {
    sort_item* out = merged.data();
    for (std::size_t first = 0; first < size;) {
      merging runs;
      for (std::size_t i = 0; i < at_once && first < size; ++i, first += run)
        runs.add(items.data() + first, items.data() + std::min(first + run, size));
      runs.begin();
      while (!runs.empty()) *out++ = runs.take();
    }
    items.swap(merged);
  }
}

// Rows with their keys, in order; `descending`: those of the same key are in the order of rows all the same.
inline column<sort_item> sorted_rows(const any_column& by, bool descending) {
  return with_keys(by, [descending](auto key_at, const auto& read) {
    column<sort_item> items(read.size());
    sort_item* const out = items.data();
    each_row(
        read.size(),
        [&](std::size_t row) {
          const std::uint64_t key = key_at(row);
          out[row] = {descending ? ~key : key, row};
        },
        read);
    sort_items(items);
    return items;
  });
}

// --- a new order -------------------------------------------------------------------------------------------------

inline constexpr std::size_t spread_rows = std::size_t{1} << 17;  // of a block of where rows go

template <typename T>
struct moved_item {
  std::uint64_t to;
  T value;
};
// While it waits for its block's turn: packed, since all of these are written and read once.
template <typename T>
struct [[gnu::packed]] spread_item {
  std::uint32_t in_block;
  T value;
};

// made[at(i).to] = at(i).value for each i below `rows`, where `to` are 0 to rows - 1, each once. at(i) reads `read`.
// `block` rows, a power of two below 2^32, go to one block.
template <typename T, typename At, typename... Ts>
column<T> spread(std::size_t rows, std::size_t block, At&& at, const column<Ts>&... read) {
  column<T> made(rows);
  T* const out = made.data();
  if (rows <= block) {
    each_row(
        rows,
        [&](std::size_t i) {
          const moved_item<T> item = at(i);
          out[item.to] = item.value;
        },
        read...);
    return made;
  }
  // As many rows go into a block as it is long, so that each block's part of `parts` is where the block is.
  column<spread_item<T>> parts(rows);
  std::vector<spread_item<T>*> next((rows + block - 1) / block);
  const int shift = std::countr_zero(block);
  for (std::size_t i = 0; i < next.size(); ++i) next[i] = parts.data() + i * block;
  each_row(
      rows,
      [&](std::size_t i) {
        const moved_item<T> item = at(i);
        *next[item.to >> shift]++ = {static_cast<std::uint32_t>(item.to & (block - 1)), item.value};
      },
      read...);
  const spread_item<T>* part = parts.data();
  each_row(
      rows,
      [&](std::size_t i) {
        out[(i >> shift << shift) + part->in_block] = part->value;
        ++part;
      },
      parts);
  return made;
}

// Where each row goes when rows are in the order of `items`.
inline column<std::uint64_t> places(const column<sort_item>& items, std::size_t block = spread_rows) {
  return spread<std::uint64_t>(
      items.size(), block, [&items](std::size_t i) { return moved_item<std::uint64_t>{items[i].row, i}; }, items);
}

// values, each where `to` says.
template <typename T>
column<T> moved(const column<T>& values, const column<std::uint64_t>& to, std::size_t block = spread_rows) {
  if constexpr (std::is_same_v<T, text>)
    return values.with_codes(moved(values.codes(), to, block));
  else
    return spread<T>(
        values.size(), block, [&](std::size_t i) { return moved_item<T>{to[i], values[i]}; }, values, to);
}

// --- a part ------------------------------------------------------------------------------------------------------

inline constexpr std::size_t select_rows = std::size_t{1} << 19;  // chosen at a time: 4 MiB of their numbers

// Appends values[first + i] for each i of `chosen`, which are ascending and below `count`. A server makes the pages
// of the result where it can; of few in many, it is asked for the elements and not for their pages.
template <typename T>
void append_chosen(column<T>& to, const column<T>& values, std::size_t first, std::size_t count,
                   std::span<const std::size_t> chosen) {
  const std::size_t before = to.size();
  to.resize(before + chosen.size());
  T* const out = to.data() + before;
  const T* const from = values.data() + first;
  if constexpr (std::is_arithmetic_v<T> && sizeof(T) >= 4)
    return detail::selecting<T>({from, count}, chosen, out).run();
  std::size_t asked = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] >= asked) {
      asked = chosen[i] / block_rows * block_rows + block_rows;
      ahead(values, first + asked);
    }
    out[i] = from[chosen[i]];
  }
}

// An empty column of the kind that `like` has.
inline any_column empty_like(const any_column& like) {
  return std::visit(
      []<typename T>(const column<T>& typed) -> any_column {
        if constexpr (std::is_same_v<T, text>)
          return typed.with_codes({});
        else
          return column<T>();
      },
      like);
}

// Both of the same kind, and of text with the same strings.
inline void append_chosen(any_column& to, const any_column& values, std::size_t first, std::size_t count,
                          std::span<const std::size_t> chosen) {
  std::visit(
      [&]<typename T>(const column<T>& typed) {
        column<T>& end = std::get<column<T>>(to);
        if constexpr (std::is_same_v<T, text>) {
          column<std::uint32_t> codes = end.take_codes();
          append_chosen(codes, typed.codes(), first, count, chosen);
          end = typed.with_codes(std::move(codes));
        } else {
          append_chosen(end, typed, first, count, chosen);
        }
      },
      values);
}

template <typename T>
column<T> part_of(const column<T>& values, std::size_t first, std::size_t count) {
  if constexpr (std::is_same_v<T, text>)
    return values.with_codes(part_of(values.codes(), first, count));
  else
    return column<T>(std::span(values).subspan(first, count));
}
inline any_column part_of(const any_column& values, std::size_t first, std::size_t count) {
  return std::visit([=](const auto& typed) -> any_column { return part_of(typed, first, count); }, values);
}

inline std::size_t size_of(const any_column& values) {
  return std::visit([](const auto& typed) { return typed.size(); }, values);
}
inline any_column moved(const any_column& values, const column<std::uint64_t>& to) {
  return std::visit([&to](const auto& typed) -> any_column { return moved(typed, to); }, values);
}
inline void reserve(any_column& values, std::size_t rows) {
  std::visit([rows](auto& typed) { typed.reserve(rows); }, values);
}

}  // namespace inside

// Ascending, in blocks; what is not a number (NaN) comes last. Needs 32 bytes of far memory an element meanwhile.
template <typename T>
  requires std::is_arithmetic_v<T>
void sort(column<T>& values) {
  column<inside::sort_item> items(values.size());
  inside::each_row(values.size(), [&](std::size_t row) { items[row] = {inside::sort_key(values[row]), 0}; }, values);
  inside::sort_items(items);
  inside::each_row(
      values.size(), [&](std::size_t row) { values[row] = inside::value_of_key<T>(items[row].key); }, items);
}

}  // namespace hl::far
