// Parts of the runtime that `--without` can leave out, to measure what each is worth. All are there unless said
// otherwise; nothing but speed depends on them.
#pragma once

#include <cstdint>

namespace hinterland {

// Whose feedback says when pages are reclaimed ahead of need, and by how many threads: --reclaim.
enum class Reclaim : std::uint8_t { adaptive, hermit };

// Which private anonymous memory may be far: --addresses. `automatic`: all, or what lies in the window where the
// process cannot have all (docs/adr/0074-every-address.md).
enum class Addresses : std::uint8_t { automatic, all, window };

struct Parts {
  // Reclaim adapts: a second thread when one falls behind, second chances for clean pages while they are used, and
  // scattered pages taken by the fault handler while they leave one by one.
  bool feedback = true;
  bool background_reclaim = true;  // else a fault that finds no room makes some
  bool second_chance = true;       // else frames go back to the kernel as soon as they are written
  bool batching = true;            // of pages unmapped or moved away; else one at a time
  bool second_reclaimer = true;    // else one thread reclaims in the background
  bool write_back_thread = true;   // else a fault handler writes back what it takes
  bool write_forecast = true;      // else a page that a read brings in is always protected
  bool read_ahead = true;          // of faults
  bool second_mapper = true;       // a second thread maps long runs; else the fault handler alone does
};

}  // namespace hinterland
