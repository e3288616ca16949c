// Who of a tree of processes gets how much of their common local memory (run --local-total). Pure computing.
//
// While there is room, each keeps what it uses; of the rest half is for all alike, so that who grows has room, and
// half goes to those who miss pages. Once there is none, memory goes where pages are missed: shares are in proportion
// to misses. A process that gets more then misses less, so it comes to rest where a byte spares the same misses
// everywhere. Sequential scans, which read ahead, count by their faults and not by their pages: more memory would
// spare them little.
#pragma once

#include <cstdint>
#include <vector>

namespace hinterland::cli {

struct Claim {
  std::uint64_t budget_bytes;  // what it has now
  std::uint64_t used_bytes;    // local memory that it uses now; may be above a budget that has just become smaller
  double misses;               // a second, smoothed: pages that it wanted and that were far
};

// What a process gets that has just been started, and what is kept free for the next one.
std::uint64_t first_share(std::uint64_t total_bytes);
// What each of so many keeps whatever happens.
std::uint64_t least_share(std::uint64_t total_bytes, std::size_t processes);

// Their new budgets, in order. The greater of budget and use, of all together and with a first share for who comes
// next, is not above the total, unless it was, or so many minimum budgets are: a budget grows only by what others
// have really given up.
std::vector<std::uint64_t> share_out(std::uint64_t total_bytes, const std::vector<Claim>& claims);

}  // namespace hinterland::cli
