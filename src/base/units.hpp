// Strong types for the quantities that must not be mixed up: page indexes, page counts, bytes.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace hinterland {

inline constexpr std::size_t kPageShift = 12;
inline constexpr std::size_t kPageSize = std::size_t{1} << kPageShift;  // bytes
inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;
inline constexpr std::size_t kGiB = 1024 * kMiB;

// Index of a page among the places that pages may have: (address - where places begin) >> kPageShift (Window).
struct PageIndex {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(PageIndex, PageIndex) = default;
  constexpr PageIndex operator+(std::uint64_t pages) const { return {value + pages}; }
};

// A run of pages: [first, first + count).
struct PageRun {
  PageIndex first;
  std::uint32_t count = 0;
  friend constexpr bool operator==(PageRun, PageRun) = default;
  constexpr PageIndex end() const { return first + count; }
};

constexpr std::size_t bytes_of_pages(std::size_t pages) { return pages << kPageShift; }
constexpr std::size_t pages_of_bytes(std::size_t bytes) { return (bytes + kPageSize - 1) >> kPageShift; }
constexpr std::uintptr_t page_floor(std::uintptr_t address) { return address & ~(kPageSize - 1); }
constexpr std::uintptr_t page_ceil(std::uintptr_t address) { return page_floor(address + kPageSize - 1); }

}  // namespace hinterland
