// Compute where the memory is: sums, searches and choices over arrays, of which what is far at a memory server that
// offers it (tcp:) is computed there, so that a page costs some bytes on the wire and none of local memory. Pages
// that are local, on other devices or at a server that offers nothing are read and computed here, as a loop would do
// it.
//
//     std::span<const double> prices = ...;                      // anything contiguous: a vector, a region, a
//     mapping double all = hl::far::sum(prices); std::size_t dear = hl::far::count(prices, hl::far::compare::greater,
//     100.0); std::vector<std::size_t> where = hl::far::filter(prices, hl::far::compare::greater, 100.0);
//     hl::far::gather(prices, where, out);                       // out[i] = prices[where[i]]
//
// Elements are integers or floating-point numbers of 4 or 8 bytes. The results are the same bits wherever each page
// was, also of floating-point sums, which are added page by page (unless the program is compiled with -ffast-math).
// Only headers are needed; without Hinterland it is all computed here.
//
// Threads: as reading the array. Nobody may write the elements meanwhile; other memory, on the same pages too, may be
// written. Blocks for as long as the server takes. Not for signal handlers. A page that cannot be had raises SIGBUS
// after a message, as when it is read. Of what a server sends, nothing but its form can be checked: computing there
// means trusting it with the results (docs/offload.md).
//
// C++20, for GCC and Clang on x86-64.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "hinterland/hint.h"
#include "hinterland/offload_pages.hpp"

namespace hl::far {

// What filter() and count() look for: elements that are ... to the operand. What is not a number is only not_equal.
enum class compare : std::uint16_t {
  equal = detail::equal,
  not_equal = detail::not_equal,
  less = detail::less,
  less_equal = detail::less_equal,
  greater = detail::greater,
  greater_equal = detail::greater_equal,
};

template <typename Range>
concept elements = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
                   std::is_arithmetic_v<std::ranges::range_value_t<Range>>;
template <elements Range>
using element_of = std::ranges::range_value_t<Range>;

namespace detail {

template <typename T>
hl_computation computation(operation what) {
  return {what, far::detail::element_of<T>(), 0, 0, 0};
}
template <typename T>
hl_computation computation(operation what, compare how, T with) {
  return {what, far::detail::element_of<T>(), static_cast<std::uint16_t>(how), 0, widened(with)};
}

// Results that are asked for together: as many as may be, since the server is then asked for more ahead. They and
// their marks take 17 KiB of the stack, or, where results are larger, ordinary memory.
template <typename Result>
using results_at_once =
    std::conditional_t<(sizeof(Result) <= sizeof(partial)), std::array<Result, HL_COMPUTE_MAX>, std::vector<Result>>;

// Has done what it can: done[i] says of each piece whether it was computed.
inline void compute_far(const hl_computation& what, const void* from, std::size_t count, const std::size_t* indices,
                        void* results, unsigned char* done) {
  const struct hl_runtime* runtime = hl__runtime();
  if (runtime->abi_version >= 4 && runtime->size != 0 && runtime->compute != nullptr)
    runtime->compute(&what, from, count, indices, results, done);
}

// Elements from `from` on that lie on `pages` pages.
template <typename T>
std::size_t elements_on(const T* from, std::size_t pages) {
  return (pages * page_bytes - reinterpret_cast<std::uintptr_t>(from) % page_bytes) / sizeof(T);
}

// Calls visit(number of the piece's first element, how many it has, Result) for each piece, in order.
template <typename Result, typename T, typename Visit>
void each_piece(const hl_computation& what, std::span<const T> all, Visit&& visit) {
  results_at_once<Result> results;
  if constexpr (sizeof(Result) > sizeof(partial))
    results.resize(std::min<std::size_t>(HL_COMPUTE_MAX, all.size_bytes() / page_bytes + 2));
  std::array<unsigned char, HL_COMPUTE_MAX> done;
  for (std::size_t first = 0; first < all.size();) {
    const std::span<const T> part =
        all.subspan(first, std::min(all.size() - first, elements_on(&all[first], HL_COMPUTE_MAX)));
    done.fill(0);
    compute_far(what, part.data(), part.size(), nullptr, results.data(), done.data());
    std::size_t at = 0;
    for (std::size_t piece = 0; at < part.size(); ++piece) {
      const std::size_t n = std::min(part.size() - at, elements_on(&part[at], 1));
      if (done[piece] == 0) compute_piece(what, &part[at], n * sizeof(T), &results[piece]);
      visit(first + at, n, results[piece]);
      at += n;
    }
    first += part.size();
  }
}

// How many of the elements whose digits above are `above` have which next digit.
template <typename T>
std::array<std::uint64_t, spread_digits> spread_over(std::span<const T> all, std::uint16_t shift,
                                                     std::uint64_t above) {
  hl_computation what = computation<T>(spread);
  what.shift = shift;
  what.operand = above;
  std::array<std::uint64_t, spread_digits> counts{};
  std::array<unsigned char, HL_COMPUTE_MAX> done;
  for (std::size_t first = 0; first < all.size();) {
    const std::span<const T> part =
        all.subspan(first, std::min(all.size() - first, elements_on(&all[first], HL_COMPUTE_MAX)));
    std::array<std::uint32_t, spread_digits> digits{};
    done.fill(0);
    compute_far(what, part.data(), part.size(), nullptr, digits.data(), done.data());
    for (std::size_t at = 0, piece = 0; at < part.size(); ++piece) {
      const std::size_t n = std::min(part.size() - at, elements_on(&part[at], 1));
      if (done[piece] == 0) compute_piece(what, &part[at], n * sizeof(T), digits.data());
      at += n;
    }
    for (std::size_t digit = 0; digit < spread_digits; ++digit) counts[digit] += digits[digit];
    first += part.size();
  }
  return counts;
}

template <typename T>
std::span<const T> whole(const T* data, std::size_t size) {
  return {data, size};
}
template <typename Range>
auto span_of(const Range& range) {
  return whole<std::ranges::range_value_t<Range>>(std::ranges::data(range), std::ranges::size(range));
}

inline bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto* const first = static_cast<const unsigned char*>(a);
  const auto* const second = static_cast<const unsigned char*>(b);
  const std::less<> before;
  return a_bytes != 0 && b_bytes != 0 && before(first, second + b_bytes) && before(second, first + a_bytes);
}

// Of integers, exactly.
template <typename T>
wide wide_sum(std::span<const T> all) {
  wide total = 0;
  each_piece<partial>(computation<T>(sum), all, [&total](std::size_t, std::size_t, const partial& piece) {
    total += static_cast<wide>(static_cast<wide_unsigned>(piece.high) << 64 | piece.low);
  });
  return total;
}
template <typename T>
double double_sum(std::span<const T> all) {
  double total = 0;
  each_piece<partial>(computation<T>(sum), all, [&total](std::size_t, std::size_t, const partial& piece) {
    total += std::bit_cast<double>(piece.low);
  });
  return total;
}

template <typename T>
std::optional<T> extreme(std::span<const T> all, operation which) {
  std::optional<T> best;
  each_piece<partial>(computation<T>(which), all, [&](std::size_t, std::size_t, const partial& piece) {
    if (piece.high == 0) return;
    const T value = narrowed<T>(piece.low);
    if (!best || (which == min ? value < *best : *best < value)) best = value;
  });
  return best;
}

}  // namespace detail

// Of integers in 64 bits with the elements' sign, or std::overflow_error where it does not fit: what was summed on
// the way may be as large as it likes. Of floating-point numbers a double. 0 of none.
template <elements Range>
auto sum(const Range& range) {
  using T = element_of<Range>;
  if constexpr (std::is_floating_point_v<T>) {
    return detail::double_sum(detail::span_of(range));
  } else {
    using total = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    const detail::wide all = detail::wide_sum(detail::span_of(range));
    if (all != static_cast<detail::wide>(static_cast<total>(all)))
      throw std::overflow_error("hl::far::sum: the sum does not fit in 64 bits");
    return static_cast<total>(all);
  }
}

// The arithmetic mean; nothing of none.
template <elements Range>
std::optional<double> mean(const Range& range) {
  const auto all = detail::span_of(range);
  if (all.empty()) return std::nullopt;
  const auto size = static_cast<double>(all.size());
  if constexpr (std::is_floating_point_v<element_of<Range>>)
    return detail::double_sum(all) / size;
  else
    return static_cast<double>(detail::wide_sum(all)) / size;
}

// The least and the greatest element. Nothing when there are none that are numbers.
template <elements Range>
std::optional<element_of<Range>> min(const Range& range) {
  return detail::extreme(detail::span_of(range), detail::min);
}
template <elements Range>
std::optional<element_of<Range>> max(const Range& range) {
  return detail::extreme(detail::span_of(range), detail::max);
}

// How many elements are `how` to `with`.
template <elements Range>
std::size_t count(const Range& range, compare how, element_of<Range> with) {
  std::size_t total = 0;
  detail::each_piece<detail::partial>(
      detail::computation(detail::count, how, with), detail::span_of(range),
      [&total](std::size_t, std::size_t, const detail::partial& piece) { total += piece.low; });
  return total;
}

// Which elements are `how` to `with`: their numbers, ascending.
template <elements Range>
std::vector<std::size_t> filter(const Range& range, compare how, element_of<Range> with) {
  std::vector<std::size_t> found;
  using bits = std::array<unsigned char, detail::filter_bytes>;
  detail::each_piece<bits>(detail::computation(detail::filter, how, with), detail::span_of(range),
                           [&found](std::size_t first, std::size_t n, const bits& piece) {
                             for (std::size_t i = 0; i < n; i += 8)
                               for (unsigned left = piece[i / 8]; left != 0; left &= left - 1)
                                 if (const std::size_t bit = static_cast<std::size_t>(std::countr_zero(left));
                                     i + bit < n)
                                   found.push_back(first + i + bit);
                           });
  return found;
}

// The distinct elements, ascending; what is not a number once, at the end. Both zeros are one, 0. Pages with more
// than 63 of them are brought here.
template <elements Range>
std::vector<element_of<Range>> unique(const Range& range) {
  using T = element_of<Range>;
  const std::span<const T> all = detail::span_of(range);
  std::vector<std::uint64_t> keys;
  std::size_t tidy = 0;  // so many are sorted, and distinct
  auto sort_out = [&keys, &tidy] {
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    tidy = keys.size();
  };
  detail::each_piece<detail::few>(detail::computation<T>(detail::distinct), all,
                                  [&](std::size_t first, std::size_t n, const detail::few& piece) {
                                    if (piece.count <= detail::few::most)
                                      keys.insert(keys.end(), piece.keys, piece.keys + piece.count);
                                    else
                                      for (const T& value : all.subspan(first, n))
                                        keys.push_back(detail::key_of(value == T{} ? T{} : value));
                                    if (keys.size() > 2 * tidy + 65536) sort_out();
                                  });
  sort_out();
  std::vector<T> found(keys.size());
  using key = decltype(detail::key_of(T{}));
  for (std::size_t i = 0; i < keys.size(); ++i) found[i] = detail::value_of<T>(static_cast<key>(keys[i]));
  return found;
}

// out[i] = range[indices[i]]. std::out_of_range when there is no such element, std::invalid_argument when `out` is
// shorter than `indices`; then nothing is written.
template <elements Range>
void gather(const Range& range, std::span<const std::size_t> indices, std::span<element_of<Range>> out) {
  using T = element_of<Range>;
  const std::span<const T> all = detail::span_of(range);
  if (out.size() < indices.size())
    throw std::invalid_argument("hl::far::gather: more indices than room for elements");
  for (const std::size_t index : indices)
    if (index >= all.size()) throw std::out_of_range("hl::far::gather: there are fewer elements");
  constexpr std::size_t most = HL_COMPUTE_MAX;
  const hl_computation what = detail::computation<T>(detail::pick);
  std::array<std::uint64_t, most> results;
  std::array<unsigned char, most> done;
  for (std::size_t first = 0; first < indices.size(); first += most) {
    const auto part = indices.subspan(first, std::min(indices.size() - first, most));
    done.fill(0);
    detail::compute_far(what, all.data(), part.size(), part.data(), results.data(), done.data());
    for (std::size_t i = 0; i < part.size(); ++i)
      out[first + i] = done[i] != 0 ? detail::narrowed<T>(results[i]) : all[part[i]];
  }
}

// The element that would have `rank` (0: the least) before it if all were sorted; what is not a number comes last.
// Goes through the array once a byte of an element. Nothing when there are not so many.
template <elements Range>
std::optional<element_of<Range>> nth(const Range& range, std::size_t rank) {
  using T = element_of<Range>;
  using key = decltype(detail::key_of(T{}));
  const std::span<const T> all = detail::span_of(range);
  if (rank >= all.size()) return std::nullopt;
  std::uint64_t left = rank, above = 0;
  for (int shift = 8 * static_cast<int>(sizeof(T)) - 8; shift >= 0; shift -= 8) {
    const auto counts = detail::spread_over(all, static_cast<std::uint16_t>(shift), above);
    std::size_t digit = 0;
    while (digit + 1 < counts.size() && left >= counts[digit]) left -= counts[digit++];
    above = above << 8 | digit;
  }
  return detail::value_of<T>(static_cast<key>(above));
}

// The element in the middle, of an even number the lower of the two. Nothing of none.
template <elements Range>
std::optional<element_of<Range>> median(const Range& range) {
  const std::size_t size = detail::span_of(range).size();
  return size == 0 ? std::nullopt : nth(range, (size - 1) / 2);
}

}  // namespace hl::far
