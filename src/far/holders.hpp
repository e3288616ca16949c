// Who holds which far page: a bit a page for each of the processes that share a device, in memory shared by them all.
// When a process is gone (exit, kill, exec), whoever notices takes its bits and lets the pages go for it.
//
// How a death is noticed: each process has a thread that holds a robust mutex in its place for as long as the process
// lives, and the kernel marks the mutex when that thread is gone. Unlike a descriptor it cannot be closed by mistake,
// unlike a process number it means the same in every namespace, and it ends at exec, as the memory does.
//
// Thread-safe, and safe between processes. A process may hold a page once.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "far/device.hpp"
#include "far/shared_memory.hpp"

namespace hinterland::far {

class Holders {
 public:
  static constexpr std::uint32_t kPlaces = 256;  // processes at the same time; more go unnoted
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // For pages numbered below `pages`. Takes address space (a bit a page and place), and memory as it is used.
  Status create(std::uint64_t pages);

  // A place for one more process, or kNone.
  std::uint32_t begin();
  // Gives back a place whose pages were all taken.
  void end(std::uint32_t place);

  // By a thread that lives as long as the process: from now on its death is noticed.
  void enter(std::uint32_t place);
  // Until another thread has called enter().
  void wait_until_entered(std::uint32_t place);

  void note(std::uint32_t place, FarPage page) {
    if (place == kNone) return;
    // relaxed here and below: read by others only after the process is gone, which the mutex orders
    word(place, page.value / 64).fetch_or(bit(page), std::memory_order_relaxed);
  }
  void forget(std::uint32_t place, FarPage page) {
    if (place == kNone) return;
    word(place, page.value / 64).fetch_and(~bit(page), std::memory_order_relaxed);
  }

  // What a process calls itself in the slab table.
  void set_owner(std::uint32_t place, std::uint32_t owner);
  std::uint32_t owner(std::uint32_t place) const;

  // The place of a process that is gone, or kNone. It is the caller's to empty (take) and to end.
  std::uint32_t find_dead(std::uint32_t own);
  // Takes a page out of a place: its process does not hold it any more. False: none is left. `end` bounds the search
  // (page numbers).
  bool take(std::uint32_t place, std::uint64_t end, FarPage* page);
  // Pages that were taken out of a place, that nobody else holds, and that are not free yet. Kept with the place:
  // when the process that empties it is gone, too, the next one goes on with them.
  static constexpr std::uint32_t kLeavingMax = 256;
  std::span<const FarPage> leaving(std::uint32_t place) const;
  void add_leaving(std::uint32_t place, FarPage page);
  bool take_leaving(std::uint32_t place, FarPage* page);  // the last one; false: none is left
  // Whether there are (or were) processes besides the first.
  bool shared() const { return header().places_ever.load(std::memory_order_relaxed) > 1; }

 private:
  // kLooking: somebody tries its mutex, or gives the place back; for an instant.
  enum State : std::uint32_t { kFree, kStarting, kAlive, kLooking };
  struct Place {
    std::atomic<std::uint32_t> state;  // futex
    std::atomic<std::uint32_t> owner;
    bool claimed;          // dead: its mutex is held by who empties it
    std::uint64_t cursor;  // word where take() goes on
    pthread_mutex_t alive;
    std::atomic<std::uint32_t> leaving;  // so many of the next
    std::array<FarPage, kLeavingMax> leaving_pages;
  };
  struct Header {
    std::atomic<std::uint32_t> places_ever;  // bounds scans
  };

  bool look(std::uint32_t place);
  static std::uint64_t bit(FarPage page) { return std::uint64_t{1} << (page.value % 64); }
  Header& header() const { return *memory_.at<Header>(0); }
  Place& place(std::uint32_t index) const { return memory_.at<Place>(kPageSize)[index]; }
  std::atomic<std::uint64_t>& word(std::uint32_t index, std::uint64_t number) const {
    return memory_.at<std::atomic<std::uint64_t>>(bits_at_ + index * stride_)[number];
  }

  SharedMemory memory_;
  std::size_t bits_at_ = 0;  // offset of the first place's bits
  std::size_t stride_ = 0;   // bytes of bits a place
};

}  // namespace hinterland::far
