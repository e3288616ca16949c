// How much of the room the pages may have that proved to be in use: what they earn.
//
// Of what leaves, some comes back soon: that miss could have been spared by a little more room. Where more of the
// proven pages that leave come back than of the others, the proven part gets more room at their cost, and the other
// way round. So a working set that fills most of the budget stays, and where pages prove themselves once and are
// never wanted again they do not push out what is new. (As ARC moves its boundary by hits in two ghost lists, Megiddo
// and Modha, FAST 2003; by shares that return, since what counts is the next page of room and not how many pages have
// left.)
#pragma once

#include <algorithm>
#include <cstdint>

namespace hinterland {

class ProvenShare {
 public:
  // A page has left, with so many held. `proven`: it had proved to be in use, and was put to the test again.
  void left(bool proven, std::uint64_t pages_held) {
    ++of(proven).left;
    if (++left_since_ < std::max<std::uint64_t>(kLeastEvidence, pages_held / kStepsATurn)) return;
    left_since_ = 0;
    move();
  }
  // A page that left is wanted again, soon enough to have been kept.
  void came_back(bool proven) { ++of(proven).back; }

  // So many proven pages may be held beside so many others.
  std::uint64_t room_beside(std::uint64_t others) const { return others * share_ / (kWhole - share_) + kAlways; }

 private:
  struct Part {
    std::uint32_t left = 0, back = 0;  // halved at each step, so that the past fades
  };

  // A step for each sixteenth of the pages held that has left: the boundary can cross all of its range within a turn.
  static constexpr std::uint64_t kStepsATurn = 16, kLeastEvidence = 64, kAlways = 16;
  static constexpr std::uint32_t kWhole = 64, kLeast = 32, kMost = 62, kStep = 2;

  Part& of(bool proven) { return parts_[proven ? 1 : 0]; }

  void move() {
    Part &others = parts_[0], &proven = parts_[1];
    // Shares that return, as fractions with a common denominator; a quarter of difference is chance.
    std::uint64_t of_others = std::uint64_t{others.back} * proven.left,
                  of_proven = std::uint64_t{proven.back} * others.left;
    if (proven.left >= kLeastEvidence / 8 && others.left >= kLeastEvidence / 8) {
      if (of_proven * 4 > of_others * 5) share_ = std::min(share_ + kStep, kMost);
      if (of_others * 4 > of_proven * 5) share_ = std::max(share_ - kStep, kLeast);
    }
    for (Part& part : parts_) {
      part.left /= 2;
      part.back /= 2;
    }
  }

  Part parts_[2];
  std::uint64_t left_since_ = 0;
  std::uint32_t share_ = 42;  // of kWhole: two thirds, until something is known
};

}  // namespace hinterland
