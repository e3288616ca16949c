// Learner: pages lie in lists by their kind, which is how they came, and their age. Of those that left it is counted
// how soon they came back, by the list that they left from (returns.hpp). The oldest page of the list that is worth
// least leaves. One victim in 64 is drawn from all pages, so that the other lists stay known: from anywhere in its
// list, for pages that came together often are of one kind, all in use or all dead (ADR 0092).
//
// A page that leaves is worth a frame where that earns more than it costs that one page more leaves: some pages of
// its list are back at once then, and which ones cannot be told beforehand. So it is at a program's start, when
// little is known of any page.
//
// So nothing is said beforehand of what a program does: a scan, a loop that is larger than the budget, a set that is
// used at random and a set that moves all show in what comes back from which list, and when.
//
// A turn is as many arrivals as pages are held; a tick is a 64th of it.
#include <algorithm>
#include <array>
#include <cstdint>
#include <new>

#include "policy/page_list.hpp"
#include "policy/pages.hpp"
#include "policy/policies.hpp"
#include "policy/returns.hpp"

namespace hinterland {
namespace {

constexpr std::uint32_t kTicksATurn = 64;
constexpr std::uint64_t kTickMin = 32;       // arrivals: weighing all lists costs some 10 us
constexpr std::uint32_t kExploreEvery = 64;  // victims
constexpr unsigned kDrawsMax = 16;           // of page numbers, of which one in sixteen should be there
constexpr unsigned kAgeingSteps = 2;         // an arrival
constexpr unsigned kHeardFrom = 4;           // the age, half a turn, from which on hints are listened for

// How a page came. Those that came back, by how long they had been away.
enum How : unsigned { kFirst, kBackAtOnce, kBackSoon, kBackWithinATurn, kBackWithinFourTurns, kBackLate, kReadAhead };
static_assert(kReadAhead < ReturnLists::kHows);
constexpr unsigned kBesideNeighbour = ReturnLists::kHows, kWasSoonBefore = 2 * ReturnLists::kHows;

How how_after(std::uint32_t ticks_away) {
  if (ticks_away < kTicksATurn / 16) return kBackAtOnce;
  if (ticks_away < kTicksATurn / 4) return kBackSoon;
  if (ticks_away < kTicksATurn) return kBackWithinATurn;
  return ticks_away < kTicksATurn * 4 ? kBackWithinFourTurns : kBackLate;
}

class LearnerPolicy {
 public:
  // Of zeroed memory. False when there is none for the pages.
  bool create(const hl_policy_env& environment) {
    environment_ = environment;
    pages_.links = static_cast<Page*>(environment_.reserve(std::uint64_t{environment_.window_pages} * sizeof(Page)));
    returns_.start();
    return pages_.links != nullptr;
  }
  std::uint64_t size() const { return held_; }

  void arrived(hl_page page, hl_arrival why) {
    if (pages_.in_list(page)) return;
    pages_seen_ = std::max<std::uint64_t>(pages_seen_, page + std::uint64_t{1});
    if (why == HL_ARRIVAL_RETURNED)
      restore(page);
    else
      enter(page, kind_of(page, why));
    ++held_;
    for (unsigned step = 0; step < kAgeingSteps; ++step) let_age();
    if (++arrivals_ < std::max<std::uint64_t>(held_ / kTicksATurn, kTickMin)) return;
    arrivals_ = 0;
    returns_.next_tick(++tick_);
  }
  void departed(hl_page page) {
    if (pages_.in_list(page)) take_out(page);
    page_of(page) = {};
  }
  std::uint32_t choose_victims(hl_page* out, std::uint32_t max) {
    std::uint32_t chosen = 0, questions = questions_for(max);
    for (std::size_t cheapest = 0; chosen < max && held_ != 0;) {
      hl_page page = explores() ? drawn() : front_of_cheapest(&cheapest);
      if (questions != 0 && was_hinted(page)) {
        --questions;
        renew(page);
        continue;
      }
      leave(page);
      out[chosen++] = page;
    }
    return chosen;
  }
  bool worth_a_frame(hl_page page) const {
    return page_of(page).list != 0 && returns_.worth_in_frame(list_of(page)) > cheapest_leaving_;
  }

 private:
  struct Page : PageLink {
    std::uint16_t tick;  // when it came or left, modulo
    std::uint16_t list;  // plus 1: that it lies in or left from; 0: never seen
  };

  bool was_hinted(hl_page page) const {
    return environment_.was_hinted != nullptr && environment_.was_hinted(environment_.runtime, page) != 0;
  }

  Page& page_of(hl_page page) { return pages_.links[page]; }
  const Page& page_of(hl_page page) const { return pages_.links[page]; }
  std::uint32_t ticks_since(hl_page page) const { return static_cast<std::uint16_t>(tick_ - page_of(page).tick); }
  unsigned list_of(hl_page page) const { return page_of(page).list - 1u; }
  bool just_came(hl_page page) const {
    return page < environment_.window_pages && pages_.in_list(page) && ticks_since(page) <= 1;
  }

  // Its kind, and what its coming back says of the list that it had left from.
  unsigned kind_of(hl_page page, hl_arrival why) {
    const Page& known = page_of(page);
    bool returns = why != HL_ARRIVAL_FIRST_TOUCH && known.list != 0;
    std::uint32_t away = returns ? ticks_since(page) : 0;
    if (returns) returns_.came_back(list_of(page), away);
    if (why == HL_ARRIVAL_READ_AHEAD) return kReadAhead;  // all alike: what came as a run leaves as a run
    How how = returns ? how_after(away) : kFirst;
    unsigned before = known.list != 0 ? ReturnLists::kind_of(list_of(page)) % ReturnLists::kHows : kFirst;
    bool beside = just_came(page - 1) || just_came(page + 1);
    bool was_soon = before == kBackAtOnce || before == kBackSoon;
    return how + (beside ? kBesideNeighbour : 0) + (was_soon ? kWasSoonBefore : 0);
  }
  void put(hl_page page, unsigned list) {
    page_of(page).list = static_cast<std::uint16_t>(list + 1);
    lists_[list].push_back(pages_, page);
  }
  void enter(hl_page page, unsigned kind) {
    page_of(page).tick = static_cast<std::uint16_t>(tick_);
    put(page, ReturnLists::list_of(kind, 0));
  }
  void take_out(hl_page page) {
    lists_[list_of(page)].remove(pages_, page);
    --held_;
  }
  void leave(hl_page page) {
    take_out(page);
    returns_.left(tick_, list_of(page));
    page_of(page).tick = static_cast<std::uint16_t>(tick_);
  }
  // It could not be taken: back to where it was, as if it came now, and nothing is learned from it.
  void restore(hl_page page) {
    if (page_of(page).list == 0) return enter(page, kFirst);
    returns_.did_not_leave(tick_ - ticks_since(page), list_of(page));
    enter(page, ReturnLists::kind_of(list_of(page)));
  }
  // A hint has named it: as young as if it came now.
  void renew(hl_page page) {
    unsigned kind = ReturnLists::kind_of(list_of(page));
    lists_[list_of(page)].remove(pages_, page);
    enter(page, kind);
  }
  // One step of a walk round all lists: the page at the front goes on to the list of its age, or the walk goes on.
  void let_age() {
    unsigned list = ageing_, age = list % ReturnLists::kAges;
    // In the last age a page stays: its tick may have come round.
    if (lists_[list].empty() || age == ReturnLists::kAges - 1) return walk_on();
    hl_page page = lists_[list].front();
    unsigned now = ReturnLists::age_of(ticks_since(page));
    if (now <= age) return walk_on();
    // The first answer says nothing: from then on hints are listened for.
    if (now >= kHeardFrom && was_hinted(page) && age >= kHeardFrom) return renew(page);
    lists_[list].remove(pages_, page);
    put(page, ReturnLists::list_of(ReturnLists::kind_of(list), now));
  }
  void walk_on() { ageing_ = (ageing_ + 1) % ReturnLists::kLists; }

  // The oldest page of the first list that has one, from the `cheapest` on: pages that stay were put into dearer
  // lists, or wait for the next call.
  hl_page front_of_cheapest(std::size_t* cheapest) {
    const auto& order = returns_.cheapest_first();
    while (lists_[order[*cheapest]].empty()) *cheapest = (*cheapest + 1) % ReturnLists::kLists;
    cheapest_leaving_ = returns_.cost_of_leaving(order[*cheapest]);
    return lists_[order[*cheapest]].front();
  }
  bool explores() { return next_random() % kExploreEvery == 0; }
  // Any page that is there. Where few of those that ever were still are, the front of a list, by the lists' sizes.
  hl_page drawn() {
    for (unsigned step = 0; step < kDrawsMax; ++step) {
      const auto page = static_cast<hl_page>(next_random() % pages_seen_);
      if (pages_.in_list(page)) return page;
    }
    std::uint64_t at = next_random() % held_;
    std::size_t list = 0;
    while (at >= lists_[list].size()) at -= lists_[list++].size();
    return lists_[list].front();
  }
  // xorshift64* (Vigna 2016), with a fixed seed: a trace gives the same victims again.
  std::uint64_t next_random() {
    random_ ^= random_ >> 12;
    random_ ^= random_ << 25;
    random_ ^= random_ >> 27;
    return (random_ * 0x2545f4914f6cdd1d) >> 16;
  }

  hl_policy_env environment_{};
  LinksOf<Page> pages_;
  std::uint64_t pages_seen_ = 1;  // their numbers lie below that
  std::uint64_t held_ = 0, arrivals_ = 0, random_ = 0x9e3779b97f4a7c15;
  std::uint32_t tick_ = 1;
  unsigned ageing_ = 0;
  float cheapest_leaving_ = 0;  // what it costs that pages of the list leave that the last victim came from
  std::array<PageList, ReturnLists::kLists> lists_;
  Returns returns_{};
};

LearnerPolicy& of(void* state) { return *static_cast<LearnerPolicy*>(state); }

void* create(const hl_policy_env* environment) {
  void* place = environment->reserve(sizeof(LearnerPolicy));
  if (place == nullptr) return nullptr;
  auto* policy = new (place) LearnerPolicy;
  return policy->create(*environment) ? policy : nullptr;
}
void arrived(void* state, hl_page first, uint32_t count, hl_arrival why, uint8_t) {
  for (hl_page page = first; page != first + count; ++page) of(state).arrived(page, why);
}
void departed(void* state, hl_page first, uint32_t count) {
  for (hl_page page = first; page != first + count; ++page) of(state).departed(page);
}
uint32_t choose_victims(void* state, hl_page* out, uint32_t max) { return of(state).choose_victims(out, max); }
uint64_t size(void* state) { return of(state).size(); }
int worth_a_frame(void* state, hl_page page) { return of(state).worth_a_frame(page) ? 1 : 0; }

}  // namespace

const hl_policy_ops kLearnerPolicy = {HL_POLICY_ABI_VERSION,
                                      "learner",
                                      "what comes back soon stays: learned by how pages came, and by their age",
                                      create,
                                      arrived,
                                      departed,
                                      choose_victims,
                                      size,
                                      nullptr,
                                      nullptr,
                                      0,
                                      nullptr,
                                      nullptr,
                                      nullptr,
                                      nullptr,
                                      nullptr,
                                      nullptr,
                                      worth_a_frame};

}  // namespace hinterland
