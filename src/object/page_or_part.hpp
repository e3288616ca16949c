// Whether the whole of a far page is read for an object, or the object alone.
//
// Where objects are wanted here and there, one alone is 64 bytes in the place of 4096. Where they are wanted in the
// order in which they lie, one page is a wait in the place of fifty. So who goes from neighbour to neighbour gets
// pages from the third object on, and on all pages that follow as long as he goes from the end of one to the
// beginning of another. Two objects that are neighbours by chance change nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/units.hpp"
#include "far/device.hpp"

namespace hinterland::object {

// What is wanted together of one page: from here on the page costs less than its parts do, whose requests have their
// own bytes and their own work at both ends.
inline constexpr std::uint32_t kPartBytesMax = kPageSize / 2;

// Remembers `kWalks` places where objects were wanted last, for as many walks at a time. Not thread-safe.
template <std::size_t kWalks>
class PageOrPart {
 public:
  // To be asked for each object that is wanted, in that order, also where its page is there.
  bool wants_page(far::FarPage page, std::uint32_t from, std::uint32_t bytes) {
    const std::uint32_t end = from + bytes, gap = bytes + kGapBytes;
    for (Walk& walk : walks_) {
      if (walk.end == 0) continue;
      if (walk.page == page) {
        if (from >= walk.first && end <= walk.end) return walk.steps >= kSteps;  // once more
        if (from > walk.end + gap || walk.first > end + gap) continue;
        walk.first = std::min(walk.first, from);
        walk.end = std::max(walk.end, end);
        return ++walk.steps >= kSteps;
      }
      if (walk.steps < kSteps) continue;
      const bool upwards = walk.end + gap >= kPageSize && from <= gap;
      const bool downwards = walk.first <= gap && end + gap >= kPageSize;
      if (!upwards && !downwards) continue;
      walk = {page, from, end, walk.steps};
      return true;
    }
    walks_[next_++ % kWalks] = {page, from, end, 0};
    return false;
  }

 private:
  static constexpr std::uint32_t kSteps = 2;
  // With one more object of the same size: what lies between may have ended, or be wanted by nobody.
  static constexpr std::uint32_t kGapBytes = 64;
  struct Walk {
    far::FarPage page;
    std::uint32_t first = 0, end = 0;  // bytes of the page that it has gone over; end 0: none
    std::uint32_t steps = 0;
  };
  std::array<Walk, kWalks> walks_{};
  std::size_t next_ = 0;
};

}  // namespace hinterland::object
