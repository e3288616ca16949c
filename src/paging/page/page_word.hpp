// A page's whole life in one 64-bit atomic word, and the only place where it changes (docs/architecture.md).
//
//   Untouched --first touch--> Resident --victim--> Leaving --written--> Parked --frame reused--> Far
//       ^                        ^  ^                  |                   |                       |
//       |  all zero, freed       |  +----- refused ----+                   |  second chance        | fault
//       +------------------------+-----------------------------------------+                       v
//                                ^------------------------------------------------------------- Arriving
//   Far --unreadable--> Lost
//
// bit   0..2   state
// bit   3      busy: one mover works on the page (invariant I1); only its holder changes the mapping or the far copy
// bit   4      waiters: somebody faulted on the busy page; who lets go of it must wake the page
// bit   5      dirty: differs from its far copy, or has none (invariant I3: not dirty means equal, and protected)
// bit   6      discardable: the heap freed it; its bytes need not be kept
// bit   7      often written: the last read fetch was followed by a write, so map it writable next time
// bit   8      has far: the payload names a far page
// bit   9      writable: how this one fetch will map it, out of bit 7 or a guess (Arriving only)
// bit  10      fetched: the fetcher may hold a copy of the far page already (Far only; any change of the word ends
// it) bit  16..19  priority, from hints bit  24..63  payload: a far page (Resident clean, Arriving, Far), or a frame
// (Leaving, Parked)
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/check.hpp"
#include "far/device.hpp"

namespace hinterland {

enum class PageState : std::uint8_t { untouched = 0, resident, leaving, parked, far, arriving, lost };

class PageWord {
 public:
  constexpr PageWord() = default;
  constexpr explicit PageWord(std::uint64_t bits) : bits_(bits) {}

  constexpr std::uint64_t bits() const { return bits_; }
  constexpr PageState state() const { return static_cast<PageState>(bits_ & kStateMask); }
  constexpr bool busy() const { return (bits_ & kBusy) != 0; }
  constexpr bool waiters() const { return (bits_ & kWaiters) != 0; }
  constexpr bool dirty() const { return (bits_ & kDirty) != 0; }
  constexpr bool discardable() const { return (bits_ & kDiscardable) != 0; }
  constexpr bool often_written() const { return (bits_ & kOftenWritten) != 0; }
  constexpr bool fetched() const { return (bits_ & kFetched) != 0; }
  constexpr bool writable() const { return (bits_ & kWritable) != 0; }
  constexpr bool has_far() const { return (bits_ & kHasFar) != 0; }
  constexpr far::FarPage far_page() const { return {bits_ >> kPayloadShift}; }
  constexpr std::uint32_t frame() const { return static_cast<std::uint32_t>(bits_ >> kPayloadShift); }

  // The words that the movers write. All come out without busy and waiters.
  static constexpr PageWord untouched() { return PageWord(static_cast<std::uint64_t>(PageState::untouched)); }
  static constexpr PageWord lost() { return PageWord(static_cast<std::uint64_t>(PageState::lost)); }
  // Still freed by the heap if it was: only the heap ends that, when it takes the page again.
  constexpr PageWord resident_dirty() const {
    return PageWord(of(PageState::resident) | kDirty | kept() | (bits_ & kDiscardable));
  }
  constexpr PageWord resident_clean(far::FarPage page) const {
    return PageWord(of(PageState::resident) | kept() | far_bits(page));
  }
  constexpr PageWord leaving(std::uint32_t frame) const {
    return PageWord(of(PageState::leaving) | kept() | payload(frame));
  }
  constexpr PageWord parked(std::uint32_t frame) const {
    return PageWord(of(PageState::parked) | kept() | payload(frame));
  }
  constexpr PageWord far(far::FarPage page) const { return PageWord(of(PageState::far) | kept() | far_bits(page)); }
  constexpr PageWord arriving() const {
    return PageWord((bits_ & ~(kStateMask | kBusy | kWaiters)) | static_cast<std::uint64_t>(PageState::arriving));
  }
  constexpr PageWord unlocked() const { return PageWord(bits_ & ~(kBusy | kWaiters)); }
  constexpr PageWord with_fetched(bool on) const { return PageWord(on ? bits_ | kFetched : bits_ & ~kFetched); }
  constexpr PageWord with_writable(bool on) const { return PageWord(on ? bits_ | kWritable : bits_ & ~kWritable); }
  constexpr PageWord with_discardable(bool on) const {
    return PageWord(on ? bits_ | kDiscardable : bits_ & ~kDiscardable);
  }
  constexpr PageWord with_often_written(bool on) const {
    return PageWord(on ? bits_ | kOftenWritten : bits_ & ~kOftenWritten);
  }

  static constexpr std::uint64_t kStateMask = 7, kBusy = 1u << 3, kWaiters = 1u << 4, kDirty = 1u << 5,
                                 kDiscardable = 1u << 6, kOftenWritten = 1u << 7, kHasFar = 1u << 8,
                                 kWritable = 1u << 9, kFetched = 1u << 10;
  static constexpr unsigned kPayloadShift = 24;

 private:
  static constexpr std::uint64_t of(PageState state) { return static_cast<std::uint64_t>(state); }
  static constexpr std::uint64_t payload(std::uint64_t value) { return value << kPayloadShift; }
  static constexpr std::uint64_t far_bits(far::FarPage page) { return kHasFar | payload(page.value); }
  constexpr std::uint64_t kept() const { return bits_ & kOftenWritten; }  // what a page remembers through its moves

  std::uint64_t bits_ = 0;
};
static_assert(sizeof(PageWord) == 8);
static_assert(PageWord{}.resident_clean({1ull << 39}).far_page().value == 1ull << 39, "40 bits of far page");

// One page's place in the table. The busy bit is the lock; everything else changes only under it.
class PageCell {
 public:
  // acquire: pairs with the release of unlock(), so that a reader sees what the mover did to mapping and far copy
  PageWord load() const { return PageWord(word_.load(std::memory_order_acquire)); }

  // Takes the busy bit if nobody holds it. `seen` becomes the word as it was (without busy).
  bool try_lock(PageWord* seen) {
    std::uint64_t bits = word_.load(std::memory_order_relaxed);
    while ((bits & PageWord::kBusy) == 0) {
      // acquire: pairs with the release of unlock()
      if (word_.compare_exchange_weak(bits, bits | PageWord::kBusy, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        *seen = PageWord(bits);
        return true;
      }
    }
    *seen = PageWord(bits);
    return false;
  }

  // Says that a thread waits for this page. False when it is no longer busy: then look again instead.
  bool announce_waiter() {
    std::uint64_t bits = word_.load(std::memory_order_relaxed);
    while ((bits & PageWord::kBusy) != 0) {
      // release: the holder's exchange in unlock() must see it, or we see that it is gone
      if (word_.compare_exchange_weak(bits, bits | PageWord::kWaiters, std::memory_order_release,
                                      std::memory_order_relaxed))
        return true;
    }
    return false;
  }

  // The holder changes the word and keeps the busy bit (and the waiters).
  void set_locked(PageWord next) {
    std::uint64_t bits = word_.load(std::memory_order_relaxed);
    HL_DCHECK((bits & PageWord::kBusy) != 0);
    // relaxed success: nobody acts on a busy word; unlock() publishes
    while (!word_.compare_exchange_weak(bits, next.bits() | PageWord::kBusy | (bits & PageWord::kWaiters),
                                        std::memory_order_relaxed, std::memory_order_relaxed)) {
    }
  }

  // Lets go with the given word. True when somebody waits: the caller must wake the page.
  [[nodiscard]] bool unlock(PageWord next) {
    HL_DCHECK(!next.busy() && !next.waiters());
    // acq_rel: publishes the move (pairs with try_lock and load), and sees announce_waiter()
    std::uint64_t before = word_.exchange(next.bits(), std::memory_order_acq_rel);
    HL_DCHECK((before & PageWord::kBusy) != 0);
    return (before & PageWord::kWaiters) != 0;
  }

  // Takeover and forked children, where nobody else runs on the page.
  void reset(PageWord word) { word_.store(word.bits(), std::memory_order_release); }

 private:
  Atomic<std::uint64_t> word_{0};
};
static_assert(sizeof(PageCell) == 8);

}  // namespace hinterland
