// SIEVE: one queue in the order of arrival, and a hand that goes over it from the oldest page on. A page that was
// used since the hand's last visit stays where it is; the first one that was not leaves. (Zhang et al., "SIEVE is
// Simpler than LRU", NSDI 2024.)
//
// Of pages that are there the runtime sees few uses: the first write, hints, and a page that is taken back while it
// is leaving. Where the program's hints name what it uses, this is SIEVE as published; without them nearly FIFO.
#include "hinterland/policy.hpp"
#include "policy/policies.hpp"

namespace hinterland {
namespace {

class Sieve {
 public:
  bool create(const hl_policy_env& environment) {
    hints_ = hl::policy::Hints(environment);
    return pages_.create(environment);
  }
  bool holds(hl_page page) const { return pages_.in_list(page); }
  std::uint64_t size() const { return queue_.size(); }
  void arrived(hl_page page, hl_arrival why, std::uint8_t) {
    queue_.push_back(pages_, page);
    pages_[page].used = why == HL_ARRIVAL_REFAULT ? 1 : 0;
  }
  void departed(hl_page page) {
    if (page == hand_) hand_ = Queue::after(pages_, page);
    queue_.remove(pages_, page);
  }
  void accessed(hl_page page, hl_access) { pages_[page].used = 1; }
  hl_page choose(std::uint32_t& questions) {
    for (;;) {
      if (hand_ == HL_NO_PAGE) hand_ = queue_.front();
      hl_page page = hand_;
      if (pages_[page].used == 0 && !hints_.name(page, questions)) {
        departed(page);
        return page;
      }
      pages_[page].used = 0;
      hand_ = Queue::after(pages_, page);
    }
  }

 private:
  using Queue = hl::policy::PageList;
  struct Page : hl::policy::PageLink {
    std::uint32_t used;  // since the hand's last visit
  };

  hl::policy::LinksOf<Page> pages_;
  Queue queue_;
  hl_page hand_ = HL_NO_PAGE;  // beyond the newest page
  hl::policy::Hints hints_;
};

}  // namespace

constinit const hl_policy_ops kSievePolicy = hl::policy::ops_of<Sieve>(
    "sieve", "pages leave in the order they came, but for those used since they were last looked at");

}  // namespace hinterland
