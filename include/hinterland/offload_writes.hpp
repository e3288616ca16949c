// Copies whose results stay where the memory is: what is far of an array at a memory server (tcp:) is put together
// there, in new pages that stay there too, so that a page costs some bytes on the wire in place of two, and none of
// local memory. Pages that are local, on other devices or at a server that offers nothing are copied here, as a loop
// would do it. The functions that only read are in offload.hpp.
//
//     hl::far::copy(prices, old_prices);                 // old_prices[i] = prices[i]
//     hl::far::select(prices, dear, dear_prices);        // dear_prices[i] = prices[dear[i]]
//
// Elements are trivially copyable; of select(), 4 or 8 bytes long. The results are the same bytes wherever each page
// was. Only headers are needed; without Hinterland it is all done here.
//
// Threads: as reading `range` and writing `out` by a loop: nobody may write either meanwhile, or read `out`. Other
// memory on the same pages may be used. Blocks for as long as the server takes. Not for signal handlers. Each page of
// `out` is replaced whole, at one moment: where the server dies, a page holds what it held before, or what is to be
// there; and what cannot be had of `range` raises SIGBUS after a message, as when it is read. Of a copied page the
// server's work is checked; that it chose what select() asked for is believed (docs/offload.md).
//
// C++20, for GCC and Clang on x86-64.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ranges>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "hinterland/hint.h"
#include "hinterland/offload.hpp"
#include "hinterland/offload_pages.hpp"

namespace hl::far {

namespace detail {

// Pages that are to be composed, and what of. `most_parts` of one page at most: more than fit into a message are not
// worth it.
class composing {
 public:
  static constexpr std::size_t most_parts = 24;

  explicit composing(std::uint32_t element_bytes) : element_bytes_(element_bytes) {
    pages_.reserve(HL_COMPUTE_MAX);
    parts_.reserve(HL_COMPUTE_MAX);
    done_.reserve(HL_COMPUTE_MAX);
    masks_.resize(HL_COMPUTE_MAX * mask_bytes(element_bytes));
  }
  static bool is_possible() {
    const struct hl_runtime* runtime = hl__runtime();
    return runtime->abi_version >= 6 && runtime->size != 0 && runtime->compose != nullptr;
  }
  bool has_room() const { return pages_.size() < HL_COMPUTE_MAX && parts_.size() + most_parts <= HL_COMPUTE_MAX; }
  bool empty() const { return pages_.empty(); }
  std::size_t size() const { return pages_.size(); }

  void begin_page(void* page) { pages_.push_back({page, static_cast<std::uint32_t>(parts_.size()), 0}); }
  // Of the page that was begun last: bytes that lie on one page.
  void add_part(const void* from, std::size_t bytes) {
    unsigned char* mask = nullptr;
    if (element_bytes_ != 0) {
      mask = masks_.data() + parts_.size() * mask_bytes(element_bytes_);
      std::memset(mask, 0, mask_bytes(element_bytes_));
    }
    parts_.push_back({from, mask, static_cast<std::uint32_t>(bytes), 0});
    ++pages_.back().count;
  }
  // Of the part that was added last, which has a mask.
  void choose(std::size_t element) {
    masks_[(parts_.size() - 1) * mask_bytes(element_bytes_) + element / 8] |=
        static_cast<unsigned char>(1u << element % 8);
  }
  std::size_t parts_of_page() const { return pages_.back().count; }
  void drop_page() {
    parts_.resize(pages_.back().first);
    pages_.pop_back();
  }
  // Calls here(page, its number since the last call) for those that are not done: they are the caller's. False when
  // no device does this.
  template <typename Here>
  bool run(Here&& here) {
    done_.assign(pages_.size(), 0);
    const int error = hl__runtime()->compose(element_bytes_, pages_.data(), pages_.size(), parts_.data(),
                                             parts_.size(), done_.data());
    for (std::size_t i = 0; i < pages_.size(); ++i)
      if (done_[i] == 0) here(pages_[i].page, i);
    pages_.clear();
    parts_.clear();
    return error == 0;
  }

 private:
  const std::uint32_t element_bytes_;
  std::vector<hl_composed_page> pages_;
  std::vector<hl_composed_part> parts_;
  std::vector<unsigned char> masks_, done_;
};

inline std::size_t bytes_to_page_end(const void* address) {
  return page_bytes - reinterpret_cast<std::uintptr_t>(address) % page_bytes;
}

// As std::memcpy, 64 KiB of `from` being on its way while others are copied.
inline void copy_here(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t ahead = 16 * page_bytes;
  auto* out = static_cast<unsigned char*>(to);
  const auto* in = static_cast<const unsigned char*>(from);
  if (bytes > page_bytes) hl_prefetch(in, std::min(ahead, bytes));
  for (std::size_t at = 0; at < bytes; at += ahead) {
    const std::size_t step = std::min(ahead, bytes - at), left = bytes - at - step;
    if (left != 0) hl_prefetch(in + at + step, std::min(ahead, left));
    std::memcpy(out + at, in + at, step);
  }
}

// Whole pages from `to` on, which is a page's beginning. Returns how many bytes are copied: less where no device
// composes.
inline std::size_t copy_pages(unsigned char* to, const unsigned char* from, std::size_t bytes) {
  composing pages(0);
  std::size_t at = 0;
  while (bytes - at >= page_bytes) {
    const std::size_t first = at;
    for (; bytes - at >= page_bytes && pages.has_room(); at += page_bytes) {
      pages.begin_page(to + at);
      const std::size_t head = std::min(page_bytes, bytes_to_page_end(from + at));
      pages.add_part(from + at, head);
      if (head < page_bytes) pages.add_part(from + at + head, page_bytes - head);
    }
    // Those that are left are mostly side by side.
    std::size_t begin = 0, end = 0;
    const bool goes_on = pages.run([&](void*, std::size_t number) {
      const std::size_t here = first + number * page_bytes;
      if (here != end || begin == end) {
        copy_here(to + begin, from + begin, end - begin);
        begin = here;
      }
      end = here + page_bytes;
    });
    copy_here(to + begin, from + begin, end - begin);
    if (!goes_on) break;
  }
  return at;
}

inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
  auto* out = static_cast<unsigned char*>(to);
  const auto* in = static_cast<const unsigned char*>(from);
  std::size_t at = 0;
  if (composing::is_possible() && bytes >= 2 * page_bytes) {
    at = bytes_to_page_end(out) % page_bytes;
    copy_here(out, in, at);
    at += copy_pages(out + at, in + at, bytes - at);
  }
  if (at < bytes) copy_here(out + at, in + at, bytes - at);
}

// Elements of 4 or 8 bytes whose addresses are multiples of that.
template <typename T>
class selecting {
 public:
  static constexpr std::size_t on_page = page_bytes / sizeof(T);

  selecting(std::span<const T> all, std::span<const std::size_t> indices, T* out)
      : all_(all), indices_(indices), out_(out) {}

  void run() {
    std::size_t at = 0;
    if (composing::is_possible() && indices_.size() >= 2 * on_page &&
        reinterpret_cast<std::uintptr_t>(out_) % sizeof(T) == 0 &&
        reinterpret_cast<std::uintptr_t>(all_.data()) % sizeof(T) == 0) {
      at = bytes_to_page_end(out_) % page_bytes / sizeof(T);
      here(0, at);
      at = pages(at);
    }
    here(at, indices_.size());
  }

 private:
  // Whole pages of `out` from element `at` on. Returns where it ended.
  std::size_t pages(std::size_t at) {
    composing made(sizeof(T));
    std::vector<std::size_t> first_of;  // of each page: its first element
    bool goes_on = true;
    while (goes_on && indices_.size() - at >= on_page) {
      first_of.clear();
      for (; indices_.size() - at >= on_page && made.has_room(); at += on_page) {
        if (begin(made, at))
          first_of.push_back(at);
        else
          here(at, at + on_page);
      }
      goes_on = made.empty() ||
                made.run([&](void*, std::size_t number) { here(first_of[number], first_of[number] + on_page); });
    }
    return at;
  }
  // False: there are too many pages that have something of it.
  bool begin(composing& made, std::size_t at) {
    made.begin_page(out_ + at);
    for (std::size_t i = at, end = at + on_page; i < end;) {
      if (made.parts_of_page() == composing::most_parts) {
        made.drop_page();
        return false;
      }
      // The elements of `all` on the page where the next one lies.
      const T* const element = &all_[indices_[i]];
      const std::size_t before = (page_bytes - bytes_to_page_end(element)) / sizeof(T);
      const std::size_t first = indices_[i] - std::min(before, indices_[i]);
      const std::size_t count = std::min(all_.size() - first, bytes_to_page_end(&all_[first]) / sizeof(T));
      made.add_part(&all_[first], count * sizeof(T));
      for (; i < end && indices_[i] < first + count; ++i) made.choose(indices_[i] - first);
    }
    return true;
  }
  void here(std::size_t first, std::size_t end) {
    if (first == end) return;
    const std::size_t from = indices_[first], span = indices_[end - 1] - from + 1;
    // Of few in many, words are asked for; of more, their pages.
    if constexpr (std::is_arithmetic_v<T>)
      if (end - first < span / 16)
        return gather(all_, indices_.subspan(first, end - first), std::span(out_ + first, end - first));
    constexpr std::size_t ahead = 16 * on_page;
    std::size_t asked = from;
    for (std::size_t i = first; i < end; ++i) {
      if (indices_[i] >= asked) {
        asked = indices_[i] + ahead;
        if (asked < from + span) hl_prefetch(&all_[asked], std::min(ahead, from + span - asked) * sizeof(T));
      }
      out_[i] = all_[indices_[i]];
    }
  }

  std::span<const T> all_;
  std::span<const std::size_t> indices_;
  T* out_;
};

}  // namespace detail

// out[i] = range[i] for all of `range`. std::invalid_argument, before anything is written, where `out` is shorter, or
// they overlap.
template <std::ranges::contiguous_range Range, typename T = std::ranges::range_value_t<Range>>
  requires std::ranges::sized_range<Range> && std::is_trivially_copyable_v<T>
void copy(const Range& range, std::span<std::type_identity_t<T>> out) {
  const auto all = detail::span_of(range);
  if (out.size() < all.size()) throw std::invalid_argument("hl::far::copy: more elements than room for them");
  if (detail::overlap(all.data(), all.size_bytes(), out.data(), all.size_bytes()))
    throw std::invalid_argument("hl::far::copy: what is copied and where it goes overlap; use std::memmove");
  detail::copy_bytes(out.data(), all.data(), all.size_bytes());
}

// out[i] = range[indices[i]], for indices that ascend. std::out_of_range where there is no such element,
// std::invalid_argument where they do not ascend, `out` is shorter than `indices`, or `range` and `out` overlap; then
// nothing is written. Indices in any order: gather().
template <std::ranges::contiguous_range Range, typename T = std::ranges::range_value_t<Range>>
  requires std::ranges::sized_range<Range> && std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8)
void select(const Range& range, std::span<const std::size_t> indices, std::span<std::type_identity_t<T>> out) {
  const auto all = detail::span_of(range);
  if (out.size() < indices.size())
    throw std::invalid_argument("hl::far::select: more indices than room for elements");
  if (detail::overlap(all.data(), all.size_bytes(), out.data(), indices.size() * sizeof(T)))
    throw std::invalid_argument("hl::far::select: what is chosen from and where it goes overlap");
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= all.size()) throw std::out_of_range("hl::far::select: there are fewer elements");
    if (i != 0 && indices[i] <= indices[i - 1])
      throw std::invalid_argument("hl::far::select: indices have to ascend; gather() takes them in any order");
  }
  detail::selecting<T>(all, indices, out.data()).run();
}

}  // namespace hl::far
