// Which addresses are mapped as far memory, in the window and outside, and how: start -> end and protection. Split
// and merged like the kernel's VMAs.
//
// Not thread-safe: the pager's map lock guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace hinterland {

// What a program asked for a mapping with madvise and mlock. The kernel keeps it with its mapping; kept here, too,
// for when pages move into a new one, for forked children, and because locked memory stays local.
enum RegionAttribute : int {
  kDontFork = 1,
  kWipeOnFork = 2,
  kDontDump = 4,
  kHuge = 8,
  kNoHuge = 16,
  kLocked = 32,
  kLockedOnFault = 64,  // with kLocked: what is not there is not brought in
};

struct Region {
  std::uintptr_t start = 0;
  std::uintptr_t end = 0;
  int protection = 0;
  int flags = 0;             // extra mmap flags (MAP_NORESERVE)
  bool surrendered = false;  // not ours to page: a file or a shared mapping lies here
  int attributes = 0;        // of RegionAttribute
  bool is_heap = false;      // its addresses stay the heap's, whatever becomes of the mapping
  std::size_t length() const { return end - start; }
};

class Regions {
 public:
  // Puts a region, replacing what was there.
  void put(const Region& region);
  // Takes away [start, end) of whatever regions are there.
  void remove(std::uintptr_t start, std::uintptr_t end);
  // Changes the protection within [start, end).
  void protect(std::uintptr_t start, std::uintptr_t end, int protection);
  // Adds and takes away attributes within [start, end).
  void mark(std::uintptr_t start, std::uintptr_t end, int added, int removed);

  // The region that holds the address, or nullptr.
  const Region* find(std::uintptr_t address) const;
  // True when every byte of [start, end) is mapped.
  bool covers(std::uintptr_t start, std::uintptr_t end) const;
  // Calls visit(Region) for each piece inside [start, end), clipped to it, ascending.
  template <typename Visit>
  void for_each(std::uintptr_t start, std::uintptr_t end, Visit&& visit) const {
    auto at = by_start_.upper_bound(start);
    if (at != by_start_.begin()) --at;
    for (; at != by_start_.end() && at->first < end; ++at) {
      Region piece = at->second;
      if (piece.end <= start) continue;
      if (piece.start < start) piece.start = start;
      if (piece.end > end) piece.end = end;
      visit(piece);
    }
  }
  // The same for all of them, whole.
  template <typename Visit>
  void for_all(Visit&& visit) const {
    for (const auto& [start, region] : by_start_) visit(region);
  }
  std::size_t mapped_bytes() const { return mapped_bytes_; }
  std::size_t count() const { return by_start_.size(); }

 private:
  void insert_merged(Region region);
  template <typename Change>
  void change(std::uintptr_t start, std::uintptr_t end, Change&& change);
  std::map<std::uintptr_t, Region> by_start_;
  std::size_t mapped_bytes_ = 0;  // without surrendered ones
};

}  // namespace hinterland
