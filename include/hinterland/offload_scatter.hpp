// Writes that are made where the memory is: elements that are scattered over an array, and an array that is filled.
// Of pages that are far at a memory server (tcp:), the elements are sent, in place of the pages: 10 bytes for an
// element of 8 and 32 for its page, where a loop brings the page and later sends it back. The pages stay far. Those
// that are local, on other devices or at a server that offers nothing are written here.
//
//     hl::far::scatter(values, indices, table);          // table[indices[i]] = values[i]
//     hl::far::fill(table, 0.5);
//
// Elements of scatter() are trivially copyable and 4 or 8 bytes long. Only headers are needed; without Hinterland it
// is all done here.
//
// Threads: nobody may read or write meanwhile what is scattered to or filled; whatever else lies on the same pages
// may be used by other threads, and what they write to it stays. Blocks for as long as the server takes. Not for
// signal handlers. Where the server dies, each page holds what it held before, or what is to be there. That the
// server put the elements where they belong is believed (docs/offload.md); of a filled page it is checked.
//
// C++20, for GCC and Clang on x86-64.
#pragma once

#include <algorithm>
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

// Pages that are to be patched or filled, and what with.
class patching {
 public:
  // Elements of one page: of more, the page is worth bringing.
  static constexpr std::size_t most_of_page = 192;

  explicit patching(std::uint32_t element_bytes) : element_bytes_(element_bytes) {
    pages_.reserve(HL_COMPUTE_MAX);
    done_.reserve(HL_COMPUTE_MAX);
  }
  static bool is_possible() {
    const struct hl_runtime* runtime = hl__runtime();
    return runtime->abi_version >= 7 && runtime->size != 0 && runtime->patch != nullptr;
  }
  bool has_room() const { return pages_.size() < HL_COMPUTE_MAX && patches_.size() + most_of_page <= HL_PATCHES_MAX; }
  bool empty() const { return pages_.empty(); }

  void begin_page(void* page) { pages_.push_back({page, 0, static_cast<std::uint32_t>(patches_.size()), 0, 0, 0}); }
  // Into the page that was begun last.
  void put(std::size_t element, std::uint64_t value) {
    patches_.push_back({value, static_cast<std::uint32_t>(element), 0});
    ++pages_.back().count;
  }
  void fill_page(void* page, std::uint64_t fill) { pages_.push_back({page, fill, 0, 0, 1, 0}); }

  // False when no device does this.
  bool run() {
    done_.assign(pages_.size(), 0);
    return hl__runtime()->patch(element_bytes_, pages_.data(), pages_.size(), patches_.data(), patches_.size(),
                                done_.data()) == 0;
  }
  // Calls visit(page, its elements) for those that run() has not done, in order: they are the caller's.
  template <typename Visit>
  void each_left(Visit&& visit) const {
    for (std::size_t i = 0; i < pages_.size(); ++i)
      if (done_[i] == 0) visit(pages_[i].page, std::span(patches_).subspan(pages_[i].first, pages_[i].count));
  }
  void clear() {
    pages_.clear();
    patches_.clear();
  }

 private:
  const std::uint32_t element_bytes_;
  std::vector<hl_patched_page> pages_;
  std::vector<hl_patch> patches_;
  std::vector<unsigned char> done_;
};

template <typename T>
class scattering {
 public:
  scattering(std::span<const T> values, std::span<const std::size_t> indices, T* out)
      : values_(values), indices_(indices), out_(out), made_(sizeof(T)) {}

  void run() {
    for (std::size_t first = 0; first < indices_.size(); first += at_once) {
      sort(first, std::min(at_once, indices_.size() - first));
      pages();
    }
  }

 private:
  // Elements that are put in the order of their pages: the more, the more of them are on one page.
  static constexpr std::size_t at_once = std::size_t{1} << 17, on_page = page_bytes / sizeof(T);
  struct element {
    std::uint64_t place;  // counted from the beginning of the first page of `out`
    T value;
  };

  std::size_t skipped() const { return reinterpret_cast<std::uintptr_t>(out_) % page_bytes / sizeof(T); }
  T* page(std::size_t number) const { return out_ - skipped() + number * on_page; }

  // By page, and of each page in the order in which they come: of two for one place the later one stays.
  void sort(std::size_t first, std::size_t count) {
    elements_.resize(count);
    for (std::size_t i = 0; i < count; ++i) elements_[i] = {indices_[first + i] + skipped(), values_[first + i]};
    std::stable_sort(elements_.begin(), elements_.end(),
                     [](const element& a, const element& b) { return a.place / on_page < b.place / on_page; });
  }

  // Behind the elements that are on the same page as the one at `at`.
  std::size_t end_of_page(std::size_t at) const {
    const std::size_t number = elements_[at].place / on_page;
    while (at < elements_.size() && elements_[at].place / on_page == number) ++at;
    return at;
  }

  void pages() {
    std::size_t at = 0;
    while (goes_on_ && at < elements_.size()) {
      const std::size_t number = elements_[at].place / on_page, end = end_of_page(at);
      if (end - at > patching::most_of_page) {
        here(at, end);
      } else {
        made_.begin_page(page(number));
        for (std::size_t i = at; i < end; ++i) made_.put(elements_[i].place % on_page, bits_of(elements_[i].value));
        if (!made_.has_room()) flush();
      }
      at = end;
    }
    flush();
    here(at, elements_.size());
  }
  // Those that are left are sent for, and then written.
  void flush() {
    if (made_.empty()) return;
    goes_on_ = made_.run();
    made_.each_left([](void* left, std::span<const hl_patch>) { send_for(left, 1); });
    made_.each_left([](void* left, std::span<const hl_patch> patches) {
      for (const hl_patch& each : patches) std::memcpy(static_cast<T*>(left) + each.element, &each.value, sizeof(T));
    });
    made_.clear();
  }
  // By the program, the next pages being on their way.
  void here(std::size_t at, std::size_t end) {
    for (std::size_t next = ask_for_pages(at, end); at < end;) {
      const std::size_t stop = next;
      next = ask_for_pages(stop, end);
      for (; at < stop; ++at) out_[elements_[at].place - skipped()] = elements_[at].value;
    }
  }
  // Sends for the next 64 pages, those that are side by side together. Returns where their elements end.
  std::size_t ask_for_pages(std::size_t at, std::size_t end) {
    for (std::size_t left = 64; left > 0 && at < end;) {
      const std::size_t first = elements_[at].place / on_page;
      std::size_t pages = 0;
      for (; left > 0 && at < end && elements_[at].place / on_page == first + pages; ++pages, --left)
        at = end_of_page(at);
      send_for(page(first), pages);
    }
    return at;
  }
  static void send_for(const void* page, std::size_t pages) {
    hl__touch(reinterpret_cast<std::uintptr_t>(page), pages * page_bytes, 0, HL_HINT_NO_WAIT | HL_HINT_WRITE);
  }
  static std::uint64_t bits_of(const T& value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  }

  std::span<const T> values_;
  std::span<const std::size_t> indices_;
  T* out_;
  patching made_;
  std::vector<element> elements_;
  bool goes_on_ = true;
};

// The value, repeated: what fills a word.
template <typename T>
std::uint64_t repeated(const T& value) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < sizeof word; i += sizeof(T))
    std::memcpy(reinterpret_cast<unsigned char*>(&word) + i, &value, sizeof(T));
  return word;
}

// Whole pages from `out` on, which is a page's beginning. Returns how many elements are filled: less where no device
// fills.
template <typename T>
std::size_t fill_pages(std::span<T> out, const T& value) {
  constexpr std::size_t on_page = page_bytes / sizeof(T);
  patching pages(8);
  std::size_t at = 0;
  for (bool goes_on = true; goes_on && out.size() - at >= on_page;) {
    for (; out.size() - at >= on_page && pages.has_room(); at += on_page) pages.fill_page(&out[at], repeated(value));
    goes_on = pages.run();
    pages.each_left(
        [&](void* left, std::span<const hl_patch>) { std::fill_n(static_cast<T*>(left), on_page, value); });
    pages.clear();
  }
  return at;
}

inline bool is_multiple(const void* address, std::size_t of) {
  return reinterpret_cast<std::uintptr_t>(address) % of == 0;
}

}  // namespace detail

// out[indices[i]] = values[i], one after the other: of two for one place the later one stays. std::out_of_range where
// there is no such element, std::invalid_argument where there are fewer values than indices, or `values` or `indices`
// lie in `out`; then nothing is written. Takes 32 bytes of ordinary memory for each of at most 131072 elements.
template <std::ranges::contiguous_range Range, typename T = std::ranges::range_value_t<Range>>
  requires std::ranges::sized_range<Range> && std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8)
void scatter(const Range& values, std::span<const std::size_t> indices, std::span<std::type_identity_t<T>> out) {
  const auto all = detail::span_of(values);
  if (all.size() < indices.size()) throw std::invalid_argument("hl::far::scatter: more indices than values");
  if (detail::overlap(all.data(), indices.size() * sizeof(T), out.data(), out.size_bytes()) ||
      detail::overlap(indices.data(), indices.size_bytes(), out.data(), out.size_bytes()))
    throw std::invalid_argument("hl::far::scatter: what is scattered and where it goes overlap");
  for (const std::size_t index : indices)
    if (index >= out.size()) throw std::out_of_range("hl::far::scatter: there are fewer elements");
  if (detail::patching::is_possible() && detail::is_multiple(out.data(), sizeof(T)))
    return detail::scattering<T>(all, indices, out.data()).run();
  for (std::size_t i = 0; i < indices.size(); ++i) out[indices[i]] = all[i];
}

// Each element of `out` is `value`. Elements are of any trivially copyable type; those of 1, 2, 4 or 8 bytes are
// filled at the server.
template <typename Range, typename T = std::ranges::range_value_t<Range>>
  requires std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> && std::is_trivially_copyable_v<T>
void fill(Range&& out, const std::type_identity_t<T>& value) {
  const std::span<T> all(std::ranges::data(out), std::ranges::size(out));
  const T with = value;  // it may lie in `out`
  std::size_t at = 0;
  if constexpr (8 % sizeof(T) == 0) {
    if (detail::patching::is_possible() && all.size_bytes() >= 2 * detail::page_bytes &&
        detail::is_multiple(all.data(), sizeof(T))) {
      at = (detail::page_bytes - reinterpret_cast<std::uintptr_t>(all.data()) % detail::page_bytes) %
           detail::page_bytes / sizeof(T);
      std::fill_n(all.begin(), at, with);
      at += detail::fill_pages(all.subspan(at), with);
    }
  }
  std::fill(all.begin() + static_cast<std::ptrdiff_t>(at), all.end(), with);
}

}  // namespace hl::far
