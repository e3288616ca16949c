// ARC: one list of pages used once lately and one of pages used more often, each with ghosts of those that left it. A
// miss that a list's ghosts would have spared moves the boundary between the two in its favour. (Megiddo and Modha,
// "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003: T1, T2, B1, B2 and p, as there.)
//
// Of pages that are there the runtime sees few uses (sieve.cpp): what comes back from the ghosts is then all that ARC
// learns from.
#include <algorithm>

#include "hinterland/policy.hpp"
#include "policy/policies.hpp"

namespace hinterland {
namespace {

class Arc {
 public:
  bool create(const hl_policy_env& environment) {
    environment_ = environment;
    hints_ = hl::policy::Hints(environment);
    return pages_.create(environment) && ghost_links_.create(environment);
  }
  bool holds(hl_page page) const { return pages_.in_list(page); }
  std::uint64_t size() const { return once_.size() + often_.size(); }

  std::uint32_t missed(hl_page page, hl_page*, std::uint32_t) {
    recall(page);
    return HL_OWN_READ_AHEAD;
  }
  void arrived(hl_page page, hl_arrival why, std::uint8_t) {
    recall(page);
    bool often = page == recalled_ || why == HL_ARRIVAL_REFAULT;
    recalled_ = HL_NO_PAGE;
    put(page, often);
  }
  void departed(hl_page page) { list_of(page).remove(pages_, page); }
  void accessed(hl_page page, hl_access) {
    departed(page);
    put(page, true);
  }
  // REPLACE(x, p), and the first case of a page that is nowhere known.
  hl_page choose(std::uint32_t& questions) {
    while (!once_.empty() && hints_.name(once_.front(), questions)) accessed(once_.front(), HL_ACCESS_ANY);
    bool known = recalled_ != HL_NO_PAGE;
    if (!known && once_.size() + once_ghosts_.size() >= capacity()) {
      if (once_.size() >= capacity()) return once_.pop_front(pages_);  // and is forgotten
      if (!once_ghosts_.empty()) once_ghosts_.pop_front(ghost_links_);
    } else if (!known && size() + once_ghosts_.size() + often_ghosts_.size() >= 2 * capacity()) {
      if (!often_ghosts_.empty()) often_ghosts_.pop_front(ghost_links_);
    }
    auto once = static_cast<double>(once_.size());
    bool from_once = !once_.empty() && (once > target_ || (known && recalled_often_ && once == target_));
    if (from_once || often_.empty()) return leave(once_, once_ghosts_, false);
    while (hints_.name(often_.front(), questions)) often_.move_to_back(pages_, often_.front());
    return leave(often_, often_ghosts_, true);
  }

 private:
  struct Page : hl::policy::PageLink {
    std::uint32_t often : 1;        // is in T2
    std::uint32_t ghost_often : 1;  // left T2
  };

  std::uint64_t capacity() const {
    std::uint64_t pages = environment_.capacity(environment_.runtime);
    return pages == UINT64_MAX ? size() : pages;
  }
  hl::policy::PageList& list_of(hl_page page) { return pages_[page].often != 0 ? often_ : once_; }
  void put(hl_page page, bool often) {
    pages_[page].often = often ? 1 : 0;
    list_of(page).push_back(pages_, page);
  }
  hl_page leave(hl::policy::PageList& from, hl::policy::PageList& ghosts, bool often) {
    hl_page page = from.pop_front(pages_);
    if (ghost_links_.in_list(page)) ghosts_of(page).remove(ghost_links_, page);
    pages_[page].ghost_often = often ? 1 : 0;
    ghosts.push_back(ghost_links_, page);
    return page;
  }
  hl::policy::PageList& ghosts_of(hl_page page) {
    return pages_[page].ghost_often != 0 ? often_ghosts_ : once_ghosts_;
  }
  // Cases II and III: the boundary moves before room is made for the page.
  void recall(hl_page page) {
    if (!ghost_links_.in_list(page)) return;
    auto once = static_cast<double>(once_ghosts_.size()), often = static_cast<double>(often_ghosts_.size());
    recalled_often_ = pages_[page].ghost_often != 0;
    if (recalled_often_)
      target_ = std::max(target_ - std::max(once / often, 1.0), 0.0);
    else
      target_ = std::min(target_ + std::max(often / once, 1.0), static_cast<double>(capacity()));
    ghosts_of(page).remove(ghost_links_, page);
    recalled_ = page;
  }

  hl_policy_env environment_{};
  hl::policy::Hints hints_;
  hl::policy::LinksOf<Page> pages_;
  hl::policy::PageLinks ghost_links_;
  hl::policy::PageList once_, often_;                // T1, T2
  hl::policy::PageList once_ghosts_, often_ghosts_;  // B1, B2
  double target_ = 0;                                // p: pages that T1 should hold
  hl_page recalled_ = HL_NO_PAGE;                    // was among the ghosts
  bool recalled_often_ = false;                      // among those of T2
};

}  // namespace

constinit const hl_policy_ops kArcPolicy = hl::policy::ops_of<Arc>(
    "arc", "pages that came back and pages that did not share local memory as their misses ask for it");

}  // namespace hinterland
