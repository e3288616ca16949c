// Operators of one's own over arrays, of which far pages are computed at a memory server that has the operator
// installed (operator.h; docs/offload.md), and all others here. The results are the same bits wherever a page was.
//
//     extern "C" void longest(const void*, std::uint64_t, const void* piece, std::size_t bytes, void* result);
//     constexpr hl_operator kLongest = {HL_OPERATOR_ABI_VERSION, 1, "longest", sizeof(trip), 0, 8, 0, longest};
//     std::uint64_t best = 0;
//     hl::far::apply<std::uint64_t>(kLongest, hl::far::nothing{}, trips,
//                                   [&](std::size_t, std::size_t, std::uint64_t of_piece) { best = std::max(best,
//                                   of_piece); });
//
// Threads: as reading the array. Nobody may write the elements meanwhile. Blocks for as long as the server takes, or
// the operator here. Not for signal handlers. A page that cannot be had raises SIGBUS after a message, as when it is
// read. Whether a server's results are right cannot be checked: as of offload.hpp.
//
// C++20, for GCC and Clang on x86-64. AIFM (OSDI 2020), 4.2.4: remote devices with active components.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ranges>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "hinterland/hint.h"
#include "hinterland/operator.h"
#include "hinterland/operator_pieces.hpp"

namespace hl::far {

// The argument of an operator that takes none.
struct nothing {};

namespace detail {

template <typename Result, typename Argument>
void check_operator(const hl_operator& which) {
  static_assert(std::is_trivially_copyable_v<Result> && std::is_trivially_copyable_v<Argument>,
                "arguments and results go over the network as bytes");
  constexpr std::size_t argument_bytes = std::is_empty_v<Argument> ? 0 : sizeof(Argument);
  if (which.abi_version != HL_OPERATOR_ABI_VERSION || which.compute == nullptr || which.element_bytes == 0 ||
      which.element_bytes > HL_OPERATOR_ELEMENT_MAX || which.result_bytes > HL_OPERATOR_RESULT_MAX ||
      which.argument_bytes > HL_OPERATOR_ARGUMENT_MAX)
    throw std::invalid_argument("hl::far::apply: not an operator as hinterland/operator.h has it");
  if (which.argument_bytes != argument_bytes || which.result_bytes != sizeof(Result))
    throw std::invalid_argument("hl::far::apply: the operator has another size of argument or result");
}

// Where the whole elements that begin at `address` end: on its page, or, when the first lies on two pages, behind it.
inline std::size_t whole_elements(std::uintptr_t address, std::size_t size, std::size_t left) {
  const std::size_t on_page = (operator_page_bytes - address % operator_page_bytes) / size;
  return std::min(left, std::max<std::size_t>(on_page, 1));
}

template <typename Argument>
struct aligned_argument {
  explicit aligned_argument(const Argument& argument) {
    if constexpr (!std::is_empty_v<Argument>) std::memcpy(bytes, &argument, sizeof argument);
  }
  alignas(16) unsigned char bytes[std::is_empty_v<Argument> ? 16 : sizeof(Argument)] = {};
};

}  // namespace detail

// results[i] is what the operator computes of pieces[i], wherever they lie. A piece that lies on two pages is
// computed here. std::invalid_argument where sizes do not agree, before anything is computed.
template <typename Result, typename Argument>
void apply_at(const hl_operator& which, const Argument& argument, std::span<const hl_piece> pieces,
              std::span<Result> results) {
  detail::check_operator<Result, Argument>(which);
  if (results.size() < pieces.size())
    throw std::invalid_argument("hl::far::apply_at: more pieces than room for results");
  for (const hl_piece& piece : pieces)
    if (piece.bytes == 0 || piece.bytes > HL_OPERATOR_ELEMENT_MAX || piece.bytes % which.element_bytes != 0)
      throw std::invalid_argument(
          "hl::far::apply_at: a piece is no whole number of elements, or more than 4096 bytes");
  const detail::aligned_argument<Argument> told(argument);
  for (std::size_t first = 0; first < pieces.size(); first += HL_COMPUTE_MAX) {
    const auto some = pieces.subspan(first, std::min<std::size_t>(HL_COMPUTE_MAX, pieces.size() - first));
    detail::apply_some(which, told.bytes, some, reinterpret_cast<unsigned char*>(&results[first]));
  }
}

// Cuts the range into pieces, one for the whole elements of each page and one for each element that lies on two, and
// calls visit(number of the piece's first element, how many it has, Result) for each, in order. The operator's `word`
// is that number. Where the range's elements have another size than the operator's: std::invalid_argument.
template <typename Result, typename Argument, std::ranges::contiguous_range Range, typename Visit>
  requires std::ranges::sized_range<Range>
void apply(const hl_operator& which, const Argument& argument, const Range& range, Visit&& visit) {
  using element = std::ranges::range_value_t<Range>;
  static_assert(std::is_trivially_copyable_v<element>, "elements are looked at as bytes");
  detail::check_operator<Result, Argument>(which);
  if (which.element_bytes != sizeof(element))
    throw std::invalid_argument("hl::far::apply: the operator is for elements of another size");
  const detail::aligned_argument<Argument> told(argument);
  const element* all = std::ranges::data(range);
  const std::size_t size = std::ranges::size(range);
  std::vector<hl_piece> pieces;
  pieces.reserve(std::min<std::size_t>(HL_COMPUTE_MAX, size));
  std::vector<unsigned char> results;
  for (std::size_t first = 0; first < size;) {
    pieces.clear();
    std::size_t at = first;
    for (; at < size && pieces.size() < HL_COMPUTE_MAX;) {
      const std::size_t n =
          detail::whole_elements(reinterpret_cast<std::uintptr_t>(all + at), sizeof(element), size - at);
      pieces.push_back({all + at, n * sizeof(element), at});
      at += n;
    }
    results.resize(pieces.size() * sizeof(Result));
    detail::apply_some(which, told.bytes, pieces, results.data());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      Result result;
      std::memcpy(&result, &results[i * sizeof(Result)], sizeof result);
      visit(static_cast<std::size_t>(pieces[i].word), pieces[i].bytes / sizeof(element), result);
    }
    first = at;
  }
}

}  // namespace hl::far
