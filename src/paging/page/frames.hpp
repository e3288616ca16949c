// Frames: physical pages that we hold outside the program's view. A dirty victim is moved into a frame (atomically:
// no write can be lost, invariant I2), written to the device from there, and stays parked in it for a while: touched
// again, it comes back without I/O (the second chance of ADR 0011).
//
//   ring:  ... empty | parked parked dropped parked | leaving leaving | empty ...
//                     ^ tail: oldest                                   ^ head: next to take
//
// Frames are taken in ring order, so victims that are neighbours get neighbouring frames, and frames that expire
// together are given back to the kernel in one range. Nobody writes into a frame but the kernel, which moves or
// copies pages there: somebody to whom the program has sent a page (a pipe, a socket) may still read it
// (docs/adr/0036-frames-are-not-filled.md).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/atomic.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "far/device.hpp"
#include "kernel/kernel.hpp"

namespace hinterland {

enum class FrameState : std::uint8_t {
  empty,    // no physical page; 0
  leaving,  // being written back
  parked,   // written; the page's word names this frame
  dropped,  // holds a physical page that nobody needs any more
};

struct Frame {  // all zeros: empty, for memory in which no constructor has run
  Atomic<FrameState> state{FrameState::empty};
  // Whose bytes; valid while leaving or parked. Changed under the page's busy bit; expire() looks without it, and
  // then asks the page's word whether that was right. Relaxed is enough for that.
  std::atomic<PageIndex> page{};
  far::FarPage far{};  // where they were written; valid while parked
};

struct FrameRun {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

class FrameRing {
 public:
  // Reserves the addresses of `frames` frames (a power of two). Registered with the kernel by attach().
  Status create(std::uint32_t frames);
  // The area must be known to the fault descriptor for MOVE to fill it. Again in a forked child.
  int attach(Kernel& kernel) { return kernel.register_range(base_, bytes_of_pages(capacity_)); }

  std::uint32_t capacity() const { return capacity_; }
  std::uintptr_t address_of(std::uint32_t frame) const { return base_ + bytes_of_pages(frame); }
  bool contains(std::uintptr_t address) const { return address - base_ < bytes_of_pages(capacity_); }
  const void* memory_of(std::uint32_t frame) const { return reinterpret_cast<const void*>(address_of(frame)); }
  Frame& operator[](std::uint32_t frame) { return frames_[frame]; }

  // Up to `wanted` empty frames with adjacent addresses, in state leaving. count 0 when the ring is full.
  FrameRun take(std::uint32_t wanted);
  // Gives back the last `count` frames of a run just taken that were not filled.
  void untake(FrameRun run, std::uint32_t count);

  // Frames between tail and head, whatever their state.
  std::uint32_t used();
  // Nobody needs what is in this frame any more. Without the mutex. release: pairs with the look of who expires it.
  void drop(Frame& frame) {
    frame.state.store(FrameState::dropped, std::memory_order_release);
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }
  static constexpr std::uint32_t kDroppedMin = 32;
  // Dropped frames keep memory from others, wherever in the ring they are. So many that a walk through all of it is
  // worth while.
  bool many_dropped() {
    std::uint32_t dropped = dropped_.load(std::memory_order_relaxed);
    return dropped >= kDroppedMin && dropped >= used() / 16;
  }
  // No frame is to be had before a page that is on its way to the device is there: it has the oldest place, and all
  // others are taken.
  bool blocked();

  // Walks from the oldest frame. decide(frame index, Frame&) says what to do with each:
  enum class Decision { pass, discard };
  // discard: give its page back; pass: it is empty, or still needed. One that is being written back does not keep
  // younger ones from going: their memory is free at once, their place in the ring when the older ones are gone.
  // At most `max` frames are discarded, in as few ranges as possible, and of the oldest `places` alone. Returns how
  // many.
  static constexpr std::uint32_t kAllPlaces = UINT32_MAX;
  template <typename Decide>
  std::uint32_t expire(Kernel& kernel, std::uint32_t max, Decide&& decide, std::uint32_t places = kAllPlaces);
  // Gives back those of these frames that are dropped, with one call, and sorts their numbers. Returns how many:
  // another evictor's expire() may have been there.
  static constexpr std::size_t kGivenBackMax = 256;  // frames in a call
  std::uint32_t give_back_dropped(Kernel& kernel, std::span<std::uint32_t> frames);

  Mutex& mutex() { return mutex_; }
  // In a forked child: every frame is given up (parked pages have their far copy).
  void abandon_all();

 private:
  template <typename Decide>
  bool discards(std::uint32_t frame, Decide& decide) {
    // acquire: pairs with drop()
    bool dropped = frames_[frame].state.load(std::memory_order_acquire) == FrameState::dropped;
    if (decide(frame, frames_[frame]) != Decision::discard) return false;
    if (dropped) dropped_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
  void give_to_kernel(Kernel& kernel, std::uint32_t first, std::uint32_t length);
  // The tail goes on to the oldest frame that is not empty. The mutex is held.
  void pass_empty();

  Mutex mutex_;
  std::uintptr_t base_ = 0;
  std::uint32_t capacity_ = 0;
  std::uint64_t head_ = 0;                 // guarded by mutex_; frame = position % capacity_
  std::uint64_t tail_ = 0;                 // guarded by mutex_
  Frame* frames_ = nullptr;                // capacity_ of them; of those that were never taken nothing is touched
  std::atomic<std::uint32_t> dropped_{0};  // by drop(), and not given back yet
};

template <typename Decide>
std::uint32_t FrameRing::expire(Kernel& kernel, std::uint32_t max, Decide&& decide, std::uint32_t places) {
  LockGuard guard(mutex_);
  std::uint32_t discarded = 0;
  std::uint64_t end = std::min(head_, tail_ + places);
  for (std::uint64_t at = tail_; at < end && discarded < max;) {
    std::uint32_t first = static_cast<std::uint32_t>(at % capacity_);
    std::uint32_t length = 0;  // one range: adjacent frames up to the end of the ring
    while (discarded + length < max && at + length < end && first + length < capacity_ &&
           discards(first + length, decide))
      ++length;
    if (length == 0) {
      ++at;
      continue;
    }
    give_to_kernel(kernel, first, length);
    at += length;
    discarded += length;
  }
  pass_empty();
  return discarded;
}

}  // namespace hinterland
