// Where far mappings lie. The window is a reserved range of addresses, out of which mappings get theirs when the
// program does not choose. Others lie outside: at addresses that the program chose, or the kernel for it.
//
// Pages have places, and everything about a page is found by its place: index = (address - origin) >> 12. Places
// cover all user addresses, with origin 0, and nothing of that costs memory where no page is; or the window alone,
// where the address space is limited or faults are served by signal. Then nothing outside is far.
// (docs/adr/0074-every-address.md)
//
// What mappings are mapped as is Regions' business. Not thread-safe, but for contains(), holds() and the places: the
// pager's map lock guards it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include "base/error.hpp"
#include "base/units.hpp"
#include "paging/page/address_set.hpp"

namespace hinterland {

class Window {
 public:
  // Reserves `bytes`, or half of it, and so on down to `least_bytes`: limits on address space (ulimit -v,
  // vm.overcommit_memory=2) may forbid more.
  static Result<Window> reserve(std::size_t bytes, std::size_t least_bytes);
  Window() = default;

  std::uintptr_t base() const { return base_; }
  std::size_t bytes() const { return bytes_; }
  // Of the window alone.
  std::uint32_t pages() const { return static_cast<std::uint32_t>(std::min(bytes_ >> kPageShift, kUsedMost)); }
  bool contains(std::uintptr_t address, std::size_t length) const {
    return address >= base_ && address - base_ <= bytes_ && length <= bytes_ - (address - base_);
  }

  // Extends the places to all user addresses, from now on. Before anything is known of any page. An error: there is
  // no address space for tables of so many places, and nothing changed.
  Status cover_all_addresses();
  bool covers_all_addresses() const { return origin_ != base_; }
  std::uintptr_t origin() const { return origin_; }
  std::uint64_t places() const { return covers_all_addresses() ? AddressSet::kEnd >> kPageShift : pages(); }
  // So many pages can be in use at any time, and have been.
  std::uint32_t used_most() const { return covers_all_addresses() ? static_cast<std::uint32_t>(kUsedMost) : pages(); }
  bool has_place(std::uintptr_t address) const { return address - origin_ < places() << kPageShift; }
  PageIndex index_of(std::uintptr_t address) const { return {(address - origin_) >> kPageShift}; }
  std::uintptr_t address_of(PageIndex page) const { return origin_ + (page.value << kPageShift); }

  // Whether the address is far memory's: in the window, or in a mapping outside. Any thread, and signal handlers.
  bool holds(std::uintptr_t address) const { return contains(address, 1) || outside_.contains(address); }
  bool overlaps(std::uintptr_t address, std::size_t length) const {
    return (address < base_ + bytes_ && base_ < address + length) || outside_.overlaps(address, length);
  }
  // The first address in [address, end) that lies elsewhere than `address` does, which is in the window, in mappings
  // outside, or in what is not far memory's; else `end`. Any thread.
  std::uintptr_t end_of_piece(std::uintptr_t address, std::uintptr_t end) const;

  // A mapping outside of the window, where the program has it already. allows(): it can be far. It is not where it
  // would touch the window, nor once more different addresses were used than there is room for in the tables.
  bool allows(std::uintptr_t address, std::size_t length) const;
  void put_outside(std::uintptr_t address, std::size_t length);
  void take_outside(std::uintptr_t address, std::size_t length) { outside_.remove(address, length); }
  const AddressSet& outside() const { return outside_; }

  // A free range, lowest first; 0 when there is none. Ranges of 2 MiB and more start on a 2 MiB border (huge pages).
  std::uintptr_t allocate(std::size_t length, std::size_t alignment);
  // Takes exactly this range out of the free ones, wholly or in part used already (MAP_FIXED replaces).
  void occupy(std::uintptr_t address, std::size_t length);
  bool is_free(std::uintptr_t address, std::size_t length) const;
  void release(std::uintptr_t address, std::size_t length);

 private:
  static constexpr std::size_t kUsedMost = UINT32_MAX - 0xffff;  // 16 TiB of pages: tables count them in 32 bits
  std::uintptr_t base_ = 0;
  std::size_t bytes_ = 0;
  std::uintptr_t origin_ = 0;
  AddressSet outside_;
  AddressSet ever_outside_;  // with a margin around each mapping, into which faults may read ahead
  std::map<std::uintptr_t, std::uintptr_t> free_;  // start -> end, disjoint, never adjacent
};

}  // namespace hinterland
