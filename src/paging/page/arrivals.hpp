// Pages that are there and that the policy has not been told of yet: threads note them here, each CPU in a place of
// its own, and whoever has the policy's lock hands many over at once. Without that every miss of every thread takes
// the lock, and waits while another has it: to choose 256 victims takes tens of microseconds. (Linux's per-CPU folio
// batches do the same for its LRU lock, mm/swap.c.)
//
// What lies here is in none of the policy's lists, so it cannot leave; PolicyHost hands everything over before it
// asks for victims.
#pragma once

#include <sched.h>

#include <array>
#include <cstdint>
#include <span>

#include "base/mutex.hpp"
#include "base/units.hpp"
#include "hinterland/policy.h"

namespace hinterland {

struct Arrival {
  PageIndex first;
  std::uint32_t count;
  hl_arrival why;
  std::uint8_t priority;
};

class Arrivals {
 public:
  static constexpr std::size_t kPlaces = 16;  // CPUs share them where there are more: then they meet now and then
  static constexpr std::size_t kRoom = 64;    // runs
  static constexpr std::size_t kMany = 32;    // pages: worth the lock, should it be free

  enum class Noted : std::uint8_t { few, many, not_at_all };
  // Any thread; never waits. not_at_all: the place of this CPU is full, or in use (the thread that is at it was
  // interrupted).
  Noted note(const Arrival& arrival) {
    Place& place = place_of_this_cpu();
    if (!place.mutex.try_lock()) return Noted::not_at_all;
    bool room = place.count < kRoom;
    if (room) {
      place.arrivals[place.count++] = arrival;
      place.pages += arrival.count;
    }
    Noted noted = !room ? Noted::not_at_all : place.pages >= kMany ? Noted::many : Noted::few;
    place.mutex.unlock();
    return noted;
  }

  // --- under the policy's lock, so that what is handed over is with the policy when the lock is free again
  // In the order in which they were noted, by CPU.
  template <typename Deliver>
  void hand_over_of_this_cpu(Deliver&& deliver) {
    hand_over(place_of_this_cpu(), deliver);
  }
  template <typename Deliver>
  void hand_over_all(Deliver&& deliver) {
    for (Place& place : places_) hand_over(place, deliver);
  }

  void lock_all() {
    for (Place& place : places_) place.mutex.lock();
  }
  void unlock_all() {
    for (Place& place : places_) place.mutex.unlock();
  }
  void reset_after_fork() {
    for (Place& place : places_) place.mutex.reset_after_fork();
  }

 private:
  struct alignas(64) Place {
    Mutex mutex;
    std::uint32_t count = 0;  // guarded by mutex, as the rest
    std::uint32_t pages = 0;  // in all of them
    std::array<Arrival, kRoom> arrivals{};
  };

  Place& place_of_this_cpu() {
    int cpu = sched_getcpu();  // no system call: libc reads it from the thread's rseq area, or asks the vDSO
    return places_[cpu < 0 ? 0 : static_cast<unsigned>(cpu) % kPlaces];
  }
  template <typename Deliver>
  static void hand_over(Place& place, Deliver& deliver) {
    LockGuard guard(place.mutex);
    for (const Arrival& arrival : std::span(place.arrivals).first(place.count)) deliver(arrival);
    place.count = place.pages = 0;
  }

  std::array<Place, kPlaces> places_;
};

}  // namespace hinterland
