// Coroutines' event loops as Arrivals sees them: lists of who waits, and a descriptor. All of it under
// Arrivals::mutex().
#pragma once

#include <cstdint>

#include "object/arrivals.hpp"

namespace hinterland::object {

// What an arrival's state says.
inline constexpr std::uint32_t kIdle = 0;
inline constexpr std::uint32_t kBrought = 1;  // in a Bringing's list
inline constexpr std::uint32_t kWatches = 2;  // for a word that somebody brings who blocks; of a coroutine, in its
                                              // loop's list
inline constexpr std::uint32_t kReady = 3;    // of a coroutine: has the answer, in its loop's list
inline constexpr std::uint32_t kOver = 4;     // in nobody's

// Nothing when it is not in it.
inline void strike(Arrival*& list, Arrival& who) {
  for (Arrival** at = &list; *at != nullptr; at = &(*at)->next) {
    if (*at != &who) continue;
    *at = who.next;
    return;
  }
}
void strike_ready(ArrivalLoop& of, Arrival& who);
void add_ready(ArrivalLoop& of, Arrival& who);

void add_loop(ArrivalLoop& added);
void remove_loop(ArrivalLoop& removed);
// 0 or -errno. Makes the descriptor, unless it is there.
int make_descriptor(ArrivalLoop& of);
// The descriptor is readable: there is something to do, unless settle() comes soon.
void signal(ArrivalLoop& of);
void set_signal(ArrivalLoop& of, bool readable);
// In a forked child, where those of all loops are its parent's.
void forget_descriptors();

}  // namespace hinterland::object
