// The local budget: how many pages are local (resident or in frames), how many may be, and when to reclaim.
//
// Invariant I5: local pages exceed the limit by no more than what is in flight. Thread-safe; the counters are
// relaxed because each is only a quantity: the pages themselves are ordered by their words. What makes less free is
// seq_cst, for the reclaimer that is about to sleep (sleep_until_woken()).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/mutex.hpp"
#include "base/units.hpp"

namespace hinterland {

class Budget {
 public:
  void set_limit(std::uint64_t bytes) {
    limit_.store(static_cast<std::int64_t>(bytes >> kPageShift));
    set_watermarks();
  }
  // Before any other thread is there: reclaim begins only when the limit is exceeded; no frame is kept.
  void keep_nothing_in_hand() {
    keeps_in_hand_ = false;
    set_limit(bytes_of_pages(static_cast<std::size_t>(limit())));
  }
  // Likewise: what is kept in hand depends on the limit alone.
  void keep_the_usual_in_hand() { adapts_ = false; }
  // Likewise: whether to reclaim ahead of need is another's to say, whom every arrival asks (hermit.hpp).
  void leave_to_others() {
    keeps_in_hand_ = adapts_ = false;
    asks_always_ = counts_charges_ = true;
    set_limit(bytes_of_pages(static_cast<std::size_t>(limit())));
  }
  void park_nothing() { parks_ = false; }
  // Before any other thread is there: frames hold pages no longer than it takes to write them, and a run to be moved.
  void park_few() { park_share_ = 64; }
  // Likewise: the policy says which pages are worth a frame, and others are in one only until they are written.
  void park_an_eighth() { park_share_ = 8; }
  std::int64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  std::int64_t local() const { return local_.load(std::memory_order_relaxed); }
  std::int64_t free() const { return limit() - local(); }

  void add(std::int64_t pages) {
    local_.fetch_add(pages);
    if (counts_charges_) [[unlikely]]
      charged_.fetch_add(static_cast<std::uint64_t>(pages), std::memory_order_relaxed);
  }
  // Pages that have become local since leave_to_others().
  std::uint64_t charged() const { return charged_.load(std::memory_order_relaxed); }
  void subtract(std::int64_t pages) { local_.fetch_sub(pages, std::memory_order_relaxed); }
  void reset_local(std::int64_t pages) { local_.store(pages, std::memory_order_relaxed); }

  bool has_room(std::int64_t pages) const { return free() >= pages; }
  bool should_start() const { return free() < start_.load(std::memory_order_relaxed); }
  bool should_stop() const { return free() >= stop_.load(std::memory_order_relaxed); }
  // Reclaim has begun, and half of what it keeps in hand is used up all the same.
  bool falls_behind() const { return free() < start_.load(std::memory_order_relaxed) / 2; }
  std::int64_t pages_until_stop() const { return stop_.load(std::memory_order_relaxed) - free(); }
  // The reclaimer, when it has reached the high watermark: no less than so many pages were free meanwhile. What is
  // kept in hand follows how fast pages arrive: where nearly all of it was used up, faults came faster than reclaim
  // got going, and twice as much is kept from now on; after many times in a row when half would have done, half.
  // (Hermit 4.2)
  void note_reclaimed(std::int64_t least_free) {
    if (!adapts_) return;
    std::int64_t start = start_.load(std::memory_order_relaxed);
    int doublings = doublings_.load(std::memory_order_relaxed);
    if (least_free < start / 4) {
      calm_ = 0;
      if (doublings < kDoublingsMax) keep_doubled(doublings + 1);
    } else if (doublings > 0 && least_free > start * 3 / 4 && ++calm_ == kCalmTimes) {
      calm_ = 0;
      keep_doubled(doublings - 1);
    }
  }
  // Pages, at most: reclaim keeps them free, so the program does not have them.
  std::int64_t kept_in_hand() const { return stop_.load(std::memory_order_relaxed); }
  // How many of so many frames go back to the kernel: the others are kept as a second chance.
  std::uint32_t frames_to_expire(std::uint32_t used) const {
    std::uint32_t kept =
        parks_ ? static_cast<std::uint32_t>(std::clamp<std::int64_t>(limit() / park_share_, 32, 16384)) : 0;
    return used > kept ? used - kept : 0;
  }
  // The longest run that is brought in at once, of at most so many pages: it must not push out what it brings.
  std::uint32_t run_max(std::uint32_t most) const {
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(limit() / 16, 1, most));
  }
  // What the reclaimer asks of an evictor at a time, which takes at most so many: small batches, while the program
  // faults as fast as pages leave, would cost a flush for every few pages.
  std::size_t batch_until_stop(std::size_t most) const {
    return static_cast<std::size_t>(
        std::clamp<std::int64_t>(pages_until_stop(), 64, static_cast<std::int64_t>(most)));
  }

  // The reclaimer sleeps here. `leaves_it`: although too little is free, because others take pages; they wake it
  // when they cannot.
  void sleep_until_woken(std::uint64_t timeout_ns, bool leaves_it = false) {
    std::uint32_t seen = wake_word_.load(std::memory_order_acquire);
    if (should_start() && !leaves_it) return;
    // seq_cst: either wake_reclaimer() sees this, or we see why it was called, or the new word
    asleep_.store(true);
    bool called = !leaves_it && limit_.load() - local_.load() < start_.load();
    if (!called && wake_word_.load() == seen) futex_wait(&wake_word_, seen, timeout_ns);
    asleep_.store(false, std::memory_order_relaxed);
  }
  // True when it slept, and is on its way now.
  bool wake_reclaimer() {
    if (!asleep_.load()) return false;
    if (!asleep_.exchange(false)) return false;  // somebody else just did
    wake_word_.fetch_add(1);
    futex_wake(&wake_word_, 1);
    return true;
  }
  void after_fork_in_child() { asleep_.store(false, std::memory_order_relaxed); }

 private:
  static constexpr unsigned kCalmTimes = 64;
  static constexpr int kDoublingsMax = 1;  // three were measured: a tenth to a quarter more misses, and no less time
  static constexpr std::int64_t kLeastInHand = 16, kMostInHand = 4096;  // pages, of the low watermark
  static constexpr std::int64_t kAlways = std::numeric_limits<std::int64_t>::max();

  void keep_doubled(int times) {
    doublings_.store(times, std::memory_order_relaxed);
    set_watermarks();
  }

  // Reclaim begins when less than 1/128 of the budget is free and stops at 1/64; both are doubled where faults use
  // that up (note_reclaimed()). What is kept in hand is lost to the program: with 1/32 to 1/16 it missed up to two
  // fifths more often. But at least 16 pages, for the faults that come while the reclaimer wakes up. Called by
  // whoever sets the limit, and by the reclaimer: if both do at once, the figures may be those of either, and reclaim
  // works with both.
  void set_watermarks() {
    std::int64_t usual = limit() / 128 << doublings_.load(std::memory_order_relaxed);
    std::int64_t most = std::min(std::max(limit() / 16, kLeastInHand), kMostInHand);
    std::int64_t start = keeps_in_hand_ ? std::clamp(usual, kLeastInHand, most) : 0;
    start_.store(asks_always_ ? kAlways : start);
    stop_.store(2 * start, std::memory_order_relaxed);
  }

  // Changes with every page, in all threads; the rest hardly ever: they do not share a cache line.
  alignas(64) std::atomic<std::int64_t> local_{0};
  alignas(64) std::atomic<std::int64_t> limit_{0};
  std::atomic<std::int64_t> start_{0};
  std::atomic<std::int64_t> stop_{0};
  bool keeps_in_hand_ = true, parks_ = true, adapts_ = true, asks_always_ = false, counts_charges_ = false;
  std::atomic<std::uint64_t> charged_{0};
  std::atomic<int> doublings_{0};
  unsigned calm_ = 0;             // the reclaimer's
  std::int64_t park_share_ = 16;  // one page in so many
  std::atomic<std::uint32_t> wake_word_{0};
  std::atomic<bool> asleep_{false};
};

}  // namespace hinterland
