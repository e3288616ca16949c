// How long pages stay away: a clock of departures, and what it showed when each page left. A page that is wanted
// again before half as many others have left as the policy holds would have been found there, had it been kept a
// little longer: it is in use. (Linux's workingset refault distance, mm/workingset.c; user space has no access bits
// to tell by.)
//
// To find out costs a fault each time. So a page that comes back very soon, several times in a row, stays for some
// more rounds before it is put to the test again.
#pragma once

#include <algorithm>
#include <cstdint>

#include "hinterland/policy.h"
#include "policy/proven_share.hpp"

namespace hinterland {

class Departures {
 public:
  // False when there is no memory for it: 4 bytes a page.
  bool create(const hl_policy_env& environment) {
    pages_ = static_cast<Page*>(environment.reserve(std::uint64_t{environment.window_pages} * sizeof *pages_));
    return pages_ != nullptr;
  }
  // The policy has given the page away, and holds so many others. `proven`: it had proved to be in use before.
  void left(hl_page page, bool proven, std::uint64_t pages_held) {
    now_ = now_ % kClockMax + 1;  // 0 is a page that never left
    pages_[page].left_at = now_ & kClockMax;
    pages_[page].proven = proven ? 1 : 0;
    share_.left(proven, pages_held);
  }
  // So many pages that proved to be in use may be held beside so many others.
  std::uint64_t proven_beside(std::uint64_t others) const { return share_.room_beside(others); }
  // The page is there again, and the policy holds so many others. Whether it proves to be in use.
  bool came_back(hl_page page, hl_arrival why, std::uint64_t pages_held) {
    if (why == HL_ARRIVAL_RETURNED) return false;  // it has not been away
    Page& known = pages_[page];
    bool wanted = why == HL_ARRIVAL_FAULT || why == HL_ARRIVAL_REFAULT;  // of hinted pages the hints tell, and better
    // After kClockMax departures the clock comes round, and a page may seem to have left just now: that costs a
    // place.
    std::uint64_t away = wanted && known.left_at != 0 ? (now_ + kClockMax - known.left_at) % kClockMax : kClockMax;
    if (away < pages_held / 4)
      known.streak = std::min(known.streak + 1u, kStreakMax) & 3u;
    else if (away >= pages_held / 2)
      known.streak = 0;
    known.rounds = ((1u << known.streak) - 1) & 7u;
    if (away < pages_held / 2) share_.came_back(known.proven != 0);
    return why == HL_ARRIVAL_REFAULT || away < pages_held / 2;
  }
  // It would be its turn to leave. Whether it stays for another round.
  bool stays(hl_page page) {
    if (pages_[page].rounds == 0) return false;
    --pages_[page].rounds;
    return true;
  }

 private:
  static constexpr std::uint32_t kClockMax = (1u << 26) - 1, kStreakMax = 2;

  struct Page {
    std::uint32_t left_at : 26;
    std::uint32_t streak : 2;  // so many times in a row it came back very soon
    std::uint32_t rounds : 3;  // that are left of its stay
    std::uint32_t proven : 1;  // when it left
  };

  Page* pages_ = nullptr;
  std::uint32_t now_ = 0;
  ProvenShare share_;
};

}  // namespace hinterland
