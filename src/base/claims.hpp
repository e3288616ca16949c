// Who gets how much of local memory that several share: processes of a tree (run --local-total), or the pages and the
// far objects of one process. Pure computing.
//
// While there is room, each keeps what it uses; of the rest half is for all alike, so that who grows has room, and
// half goes to those who miss. Once there is none, memory goes where it is missed: shares are in proportion to
// misses. Who gets more then misses less, so it comes to rest where a byte spares the same misses everywhere.
// Sequential scans, which read ahead, count by their faults and not by their pages: more memory would spare them
// little.
#pragma once

#include <cstdint>
#include <vector>

namespace hinterland {

struct Claim {
  std::uint64_t budget_bytes;  // what it has now
  std::uint64_t used_bytes;    // local memory that it uses now; may be above a budget that has just become smaller
  double misses;  // a second, smoothed: what it wanted and was far, in any unit that is the same for all claims
};

// What is shared, and its bounds, in bytes.
struct SharedTotal {
  std::uint64_t bytes;
  std::uint64_t kept;   // never granted: for who comes next
  std::uint64_t least;  // what each keeps whatever happens
  // Together they need all of it once less than this is unused. Below that, what is unused is shared, too.
  std::uint64_t slack;
  double urgent;  // misses of all together, from which on they alone decide where all of it is needed
};

// Their new budgets, in order. The greater of budget and use, of all together and with what is kept, is not above the
// total, unless it was, or all their least are: a budget grows only by what others have really given up.
std::vector<std::uint64_t> share_out(const SharedTotal& total, const std::vector<Claim>& claims);

}  // namespace hinterland
