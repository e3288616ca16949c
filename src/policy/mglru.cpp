// A multi-generational LRU: pages are in three generations. What comes enters the youngest; what is found used when
// the oldest is looked through goes there, too. When the oldest is empty, the next one is, and a new youngest begins.
// Pages that came back soon after they left belong to higher tiers; where those come back more often than the lowest
// tier's do, they are spared: they go on to the next generation instead of leaving. (Yu Zhao's, in Linux since 6.1,
// mm/vmscan.c and mm/workingset.c: as many generations as eviction keeps there, tiers, which refaults are recent, and
// the controller that compares them. The kernel's tiers count uses by read(2); here they count how often a page came
// back.)
//
// The kernel walks page tables for pages that were used. User space cannot: a page's use is its first write, a hint,
// or that it is touched while it leaves; the tiers know from refaults alone.
#include <algorithm>

#include "hinterland/policy.hpp"
#include "policy/policies.hpp"

namespace hinterland {
namespace {

class Mglru {
 public:
  bool create(const hl_policy_env& environment) {
    hints_ = hl::policy::Hints(environment);
    return pages_.create(environment);
  }
  bool holds(hl_page page) const { return pages_.in_list(page); }
  std::uint64_t size() const {
    std::uint64_t sum = 0;
    for (const hl::policy::PageList& generation : generations_) sum += generation.size();
    return sum;
  }

  void arrived(hl_page page, hl_arrival why, std::uint8_t) {
    Page& known = pages_[page];
    known.is_used = 0;
    bool nobody_asked = why == HL_ARRIVAL_READ_AHEAD || why == HL_ARRIVAL_RETURNED;
    if (why == HL_ARRIVAL_FIRST_TOUCH || why == HL_ARRIVAL_READ_AHEAD)
      known.tier = 0;
    else if (why != HL_ARRIVAL_RETURNED)
      note_return(known);
    put(page, nobody_asked ? youngest_ - 1 : youngest_);
  }
  void departed(hl_page page) { generations_[pages_[page].generation].remove(pages_, page); }
  void accessed(hl_page page, hl_access) { pages_[page].is_used = 1; }

  hl_page choose(std::uint32_t& questions) {
    for (std::uint32_t lowest_spared = lowest_tier_spared();;) {
      while (list_of(oldest_).empty()) {
        next_generation();
        lowest_spared = lowest_tier_spared();
      }
      hl_page page = list_of(oldest_).pop_front(pages_);
      Page& first = pages_[page];
      if (first.is_used != 0 || hints_.name(page, questions)) {
        first.is_used = 0;
        put(page, youngest_);
        continue;
      }
      ++tiers_[first.tier].seen;
      if (first.tier < lowest_spared) {
        first.left_in = (oldest_ + 1) & kLeftMask;
        return page;
      }
      --first.tier;  // so that it is not spared for ever
      put(page, oldest_ + 1);
    }
  }

 private:
  static constexpr std::uint32_t kGenerations = 3, kTiers = 4;
  static constexpr std::uint32_t kLists = 4;  // a power of two, so that numbers may come round
  static constexpr std::uint32_t kSoon = 2;   // left during the generation that is the oldest now, or the one before
  static constexpr std::uint32_t kLeftMask = (1u << 27) - 1;
  static constexpr std::uint64_t kSeenLeast = 64;  // the kernel's MIN_LRU_BATCH: of fewer it draws no conclusion
  struct Page : hl::policy::PageLink {
    std::uint32_t generation : 2;
    std::uint32_t is_used : 1;  // since it was looked at last
    std::uint32_t tier : 2;
    std::uint32_t left_in : 27;  // the oldest generation when it left, + 1
  };
  struct Tier {
    std::uint64_t seen = 0;       // at the old end, lately
    std::uint64_t came_back = 0;  // soon after it left
  };

  hl::policy::PageList& list_of(std::uint32_t generation) { return generations_[generation % kLists]; }
  void put(hl_page page, std::uint32_t generation) {
    pages_[page].generation = generation % kLists;
    list_of(generation).push_back(pages_, page);
  }
  void next_generation() {
    ++oldest_;
    ++youngest_;
    for (Tier& tier : tiers_) tier = {tier.seen / 2, tier.came_back / 2};
  }
  void note_return(Page& page) {
    bool soon = page.left_in != 0 && ((oldest_ + 1 - page.left_in) & kLeftMask) < kSoon;
    if (soon) ++tiers_[page.tier].came_back;
    page.tier = soon ? std::min<std::uint32_t>(page.tier + 1u, kTiers - 1) & (kTiers - 1) : 0;
  }
  // Those of this tier and of higher ones come back more often than those of the lowest.
  std::uint32_t lowest_tier_spared() const {
    std::uint32_t tier = 1;
    while (tier < kTiers && !comes_back_more_often(tiers_[tier], tiers_[0])) ++tier;
    return tier;
  }
  static bool comes_back_more_often(const Tier& one, const Tier& other) {
    return one.seen >= kSeenLeast && one.came_back * (other.seen + kSeenLeast) > (other.came_back + 1) * one.seen;
  }

  hl::policy::Hints hints_;
  hl::policy::LinksOf<Page> pages_;
  hl::policy::PageList generations_[kLists];  // by number, modulo kLists
  std::uint32_t oldest_ = 0, youngest_ = kGenerations - 1;
  Tier tiers_[kTiers];
};

}  // namespace

constinit const hl_policy_ops kMglruPolicy = hl::policy::ops_of<Mglru>(
    "mglru", "pages grow old by generations, but for those that are used, or of a kind that comes back soon");

}  // namespace hinterland
