// The ring of frames as replay sees it: places without memory. In the order in which they were taken, as FrameRing
// has them (paging/page/frames.hpp): how long a page stays parked depends on what else goes through the ring
// meanwhile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "hinterland/policy.h"
#include "paging/page/frames.hpp"

namespace hinterland::trace {

class ReplayFrames {
 public:
  // Takes the next place for a page; returns the place.
  std::uint64_t park(hl_page page) {
    frames_.push_back({State::parked, page});
    return first_ + frames_.size() - 1;
  }
  // The page is no longer in its place; the frame's memory went with it, or stays until the frame expires.
  void leave(std::uint64_t place, bool memory_stays) {
    frames_[place - first_].state = memory_stays ? State::dropped : State::empty;
    dropped_ += memory_stays;
  }
  // As FrameRing::many_dropped().
  bool many_dropped() { return dropped_ >= FrameRing::kDroppedMin && dropped_ >= used() / 16; }
  // Empties all that hold memory which nobody needs. Returns how many.
  std::uint32_t expire_dropped() {
    std::uint32_t expired = 0;
    for (Frame& frame : frames_)
      if (frame.state == State::dropped) expired += empty(frame, [](hl_page) {});
    return expired;
  }
  std::uint32_t used() {
    while (!frames_.empty() && frames_.front().state == State::empty) {
      frames_.pop_front();
      ++first_;
    }
    return static_cast<std::uint32_t>(frames_.size());
  }
  // Empties the `most` oldest frames that hold memory, of the oldest `places` alone; gone(page) for each that was
  // parked. Returns how many.
  template <typename Gone>
  std::uint32_t expire(std::uint32_t most, Gone&& gone, std::uint32_t places = FrameRing::kAllPlaces) {
    std::uint32_t expired = 0;
    std::size_t end = std::min<std::size_t>(frames_.size(), places);
    for (std::size_t at = 0; at < end && expired < most; ++at) expired += empty(frames_[at], gone);
    return expired;
  }

 private:
  enum class State : std::uint8_t { empty, parked, dropped };
  struct Frame {
    State state;
    hl_page page;  // while parked
  };

  template <typename Gone>
  bool empty(Frame& frame, Gone&& gone) {
    State before = frame.state;
    frame.state = State::empty;
    dropped_ -= before == State::dropped;
    if (before == State::parked) gone(frame.page);
    return before != State::empty;
  }

  std::deque<Frame> frames_;
  std::uint64_t first_ = 0;  // place of frames_.front()
  std::uint32_t dropped_ = 0;
};

}  // namespace hinterland::trace
