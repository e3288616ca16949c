// What is known of pages that left: how soon they came back, by the list that they left from. And from that, what
// each list is worth.
//
// Time is counted in ticks, of which 64 are a turn (learner.cpp). A list's worth is the best rate, over all times to
// wait, of pages that are back until then to the time that they were all waited for: what a frame earns that is given
// to its oldest page until it comes back or the time is up. (An optimal stopping rule, in the spirit of LHD,
// Beckmann, Chen and Cidon, NSDI 2018, which sees hits; here all that is known is what left and came back.)
//
// A page that the program still sees is not seen when it is used, so nobody knows when its time is up. What it costs
// that a page leaves is therefore what its list misses within a turn, by the time for which others have its memory
// then. A frame that keeps a page for a while out of the program's view shows whether it comes back. Where some pages
// of a list are back very soon and others not for long, such a frame earns more than that.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace hinterland {

// Which list a page lies in: its kind, which is how it came, and its age.
struct ReturnLists {
  static constexpr unsigned kAges = 9, kHows = 7, kKinds = kHows * 4, kLists = kKinds * kAges;
  // Ticks: pages younger than this belong to the age. Older ones to the last.
  static constexpr std::array<std::uint32_t, kAges - 1> kAgeEnds = {4, 8, 16, 32, 64, 96, 128, 256};

  static unsigned age_of(std::uint32_t ticks) {
    return static_cast<unsigned>(std::ranges::upper_bound(kAgeEnds, ticks) - kAgeEnds.begin());
  }
  static unsigned list_of(unsigned kind, unsigned age) { return kind * kAges + age; }
  static unsigned kind_of(unsigned list) { return list / kAges; }
};

class Returns {
 public:
  using List = std::uint16_t;

  // For zeroed memory, in which no constructor has run.
  void start() {
    for (List list = 0; list < order_.size(); ++list) order_[list] = list;
    weigh_all();
  }
  void left(std::uint32_t tick, unsigned list) { ++departures_[tick % kCohorts][list]; }
  void did_not_leave(std::uint32_t tick, unsigned list) {
    if (std::uint16_t& count = departures_[tick % kCohorts][list]; count != 0) --count;
  }
  // A page that left from this list is there again, after so many ticks.
  void came_back(unsigned list, std::uint32_t ticks_away) {
    auto within = static_cast<std::size_t>(std::ranges::upper_bound(kAwayEnds, ticks_away) - kAwayEnds.begin());
    if (within < kAways) cells_[list].back[within] += 1;
  }
  // `tick` begins. Pages that left count for a time away once they have been away for half of it: those that come
  // back are counted at once.
  void next_tick(std::uint32_t tick) {
    departures_[tick % kCohorts].fill(0);
    for (std::size_t i = 0; i < kAways; ++i) {
      const auto& cohort = departures_[(tick - kAwayMiddles[i]) % kCohorts];
      for (unsigned list = 0; list < ReturnLists::kLists; ++list) {
        Cell& cell = cells_[list];
        cell.left[i] = cell.left[i] * kKept + static_cast<float>(cohort[list]);
        cell.back[i] *= kKept;
      }
    }
    weigh_all();
  }
  // All lists, the one that is worth least first. As of the last tick.
  const std::array<List, ReturnLists::kLists>& cheapest_first() const { return order_; }
  // What it costs that pages of the list leave, and what a frame earns that keeps one for a while: in misses a tick.
  float cost_of_leaving(unsigned list) const { return cells_[list].cost_of_leaving; }
  float worth_in_frame(unsigned list) const { return cells_[list].worth_in_frame; }

 private:
  static constexpr std::size_t kAways = 7, kCohorts = 256;
  static constexpr std::array<std::uint32_t, kAways> kAwayEnds = {4, 8, 16, 32, 64, 128, 256};
  static constexpr std::uint32_t kTurn = 64,
                                 kInFrame = 8;  // ticks: so long frames keep pages (Budget::park_an_eighth())
  // Of a miss: what is spared when a page comes back from its frame, and what it costs to move a page into one, which
  // is more than to unmap it.
  static constexpr float kSavedByFrame = 0.8f, kCostOfFrame = 0.05f;
  static constexpr std::array<std::uint32_t, kAways> kAwayMiddles = {2, 6, 12, 24, 48, 96, 192};
  static constexpr float kKept = 0.99f;  // from tick to tick, of what is known: half of it is forgotten in a turn
  // Before a list has returns of its own it is believed to be as its kind is, less by a tenth for each age: without
  // any evidence the oldest pages leave first. All of these may be halved or doubled within 5 % of the misses.
  static constexpr float kTrustInKind = 6, kTrustAtFirst = 8, kBackAtFirst = 0.1f, kLessByAge = 0.1f;

  using ByAway = std::array<float, kAways>;
  struct Cell {
    ByAway left, back;
    float worth, cost_of_leaving, worth_in_frame;
  };

  ByAway expected_of(unsigned kind) const {
    ByAway expected;
    for (std::size_t i = 0; i < kAways; ++i) {
      float left = kTrustAtFirst, back = kTrustAtFirst * kBackAtFirst;
      for (unsigned age = 0; age < ReturnLists::kAges; ++age) {
        const Cell& cell = cells_[ReturnLists::list_of(kind, age)];
        left += cell.left[i];
        back += cell.back[i];
      }
      expected[i] = std::min(1.0f, back / left);
    }
    return expected;
  }
  static void weigh(Cell& cell, const ByAway& expected, float of_age) {
    float still_away = 1, waited = 0;
    std::uint32_t begin = 0;
    cell.worth = cell.worth_in_frame = 0;
    for (std::size_t i = 0; i < kAways; begin = kAwayEnds[i++]) {
      float back = (cell.back[i] + kTrustInKind * expected[i] * of_age) / (cell.left[i] + kTrustInKind);
      back = std::min(back, still_away);
      waited += (still_away - back / 2) * static_cast<float>(kAwayEnds[i] - begin);
      still_away -= back;
      float rate = (1 - still_away) / waited;
      cell.worth = std::max(cell.worth, rate);
      if (kAwayEnds[i] == kTurn) cell.cost_of_leaving = rate;
      if (kAwayEnds[i] <= kInFrame)
        cell.worth_in_frame = std::max(cell.worth_in_frame, kSavedByFrame * rate - kCostOfFrame / waited);
    }
  }
  void weigh_all() {
    for (unsigned kind = 0; kind < ReturnLists::kKinds; ++kind) {
      ByAway expected = expected_of(kind);
      for (unsigned age = 0; age < ReturnLists::kAges; ++age) {
        weigh(cells_[ReturnLists::list_of(kind, age)], expected, 1 - static_cast<float>(age) * kLessByAge);
      }
    }
    // In place and without allocating; equal ones in a fixed order, so that a trace always gives the same victims.
    std::ranges::sort(order_, [this](List a, List b) {
      return cells_[a].worth != cells_[b].worth ? cells_[a].worth < cells_[b].worth : a < b;
    });
  }

  std::array<Cell, ReturnLists::kLists> cells_;
  std::array<List, ReturnLists::kLists> order_;
  std::array<std::array<std::uint16_t, ReturnLists::kLists>, kCohorts> departures_;  // by tick, modulo, and list
};

}  // namespace hinterland
