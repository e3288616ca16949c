// The window: the reserved range of addresses in which all far mappings lie, so that everything about a page is one
// array access away: index = (address - base) >> 12. Hands out address ranges; what they are mapped as is
// Regions' business.
//
// Not thread-safe: the pager's map lock guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "base/error.hpp"
#include "base/units.hpp"

namespace hinterland {

class Window {
 public:
  // Reserves `bytes`, or half of it, and so on down to `least_bytes`: limits on address space (ulimit -v,
  // vm.overcommit_memory=2) may forbid more.
  static Result<Window> reserve(std::size_t bytes, std::size_t least_bytes);
  Window() = default;

  std::uintptr_t base() const { return base_; }
  std::size_t bytes() const { return bytes_; }
  std::uint32_t pages() const { return static_cast<std::uint32_t>(bytes_ >> kPageShift); }
  bool contains(std::uintptr_t address, std::size_t length) const {
    return address >= base_ && address - base_ <= bytes_ && length <= bytes_ - (address - base_);
  }
  PageIndex index_of(std::uintptr_t address) const {
    return {static_cast<std::uint32_t>((address - base_) >> kPageShift)};
  }
  std::uintptr_t address_of(PageIndex page) const { return base_ + (std::uintptr_t{page.value} << kPageShift); }

  // A free range, lowest first; 0 when there is none. Ranges of 2 MiB and more start on a 2 MiB border (huge pages).
  std::uintptr_t allocate(std::size_t length, std::size_t alignment);
  // Takes exactly this range out of the free ones, wholly or in part used already (MAP_FIXED replaces).
  void occupy(std::uintptr_t address, std::size_t length);
  bool is_free(std::uintptr_t address, std::size_t length) const;
  void release(std::uintptr_t address, std::size_t length);

 private:
  std::uintptr_t base_ = 0;
  std::size_t bytes_ = 0;
  std::map<std::uintptr_t, std::uintptr_t> free_;  // start -> end, disjoint, never adjacent
};

}  // namespace hinterland
