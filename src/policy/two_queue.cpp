// 2Q: new pages pass through a FIFO queue, which remembers for a while who left it (A1in and A1out); who comes back
// from there enters a queue in the order of use (Am). (Johnson and Shasha, "2Q: A Low Overhead High Performance
// Buffer Management Replacement Algorithm", VLDB 1994, the full version; a quarter and a half of the capacity, as
// there.)
//
// Of pages that are there the runtime sees few uses (sieve.cpp): Am is then the order of return.
#include "hinterland/policy.hpp"
#include "policy/policies.hpp"

namespace hinterland {
namespace {

class TwoQueue {
 public:
  bool create(const hl_policy_env& environment) {
    environment_ = environment;
    hints_ = hl::policy::Hints(environment);
    return pages_.create(environment) && out_links_.create(environment);
  }
  bool holds(hl_page page) const { return pages_.in_list(page); }
  std::uint64_t size() const { return in_.size() + main_.size(); }

  std::uint32_t missed(hl_page page, hl_page*, std::uint32_t) {
    recall(page);
    return HL_OWN_READ_AHEAD;
  }
  void arrived(hl_page page, hl_arrival why, std::uint8_t) {
    recall(page);
    pages_[page].in_main = page == recalled_ || why == HL_ARRIVAL_REFAULT ? 1 : 0;
    recalled_ = HL_NO_PAGE;
    list_of(page).push_back(pages_, page);
  }
  void departed(hl_page page) { list_of(page).remove(pages_, page); }
  void accessed(hl_page page, hl_access) {
    if (pages_[page].in_main != 0) main_.move_to_back(pages_, page);
  }
  hl_page choose(std::uint32_t& questions) {
    if (in_.size() > capacity() / 4 || main_.empty()) {
      hl_page page = in_.pop_front(pages_);
      remember(page);
      return page;
    }
    while (hints_.name(main_.front(), questions)) main_.move_to_back(pages_, main_.front());
    return main_.pop_front(pages_);
  }

 private:
  struct Page : hl::policy::PageLink {
    std::uint32_t in_main;
  };

  std::uint64_t capacity() const {
    std::uint64_t pages = environment_.capacity(environment_.runtime);
    return pages == UINT64_MAX ? size() : pages;
  }
  hl::policy::PageList& list_of(hl_page page) { return pages_[page].in_main != 0 ? main_ : in_; }
  // Before room is made for it: what leaves then may push it out.
  void recall(hl_page page) {
    if (!out_links_.in_list(page)) return;
    out_.remove(out_links_, page);
    recalled_ = page;
  }
  void remember(hl_page page) {
    if (out_links_.in_list(page)) out_.remove(out_links_, page);
    std::uint64_t most = capacity() / 2;
    while (!out_.empty() && out_.size() >= most) out_.pop_front(out_links_);
    if (most != 0) out_.push_back(out_links_, page);
  }

  hl_policy_env environment_{};
  hl::policy::Hints hints_;
  hl::policy::LinksOf<Page> pages_;
  hl::policy::PageLinks out_links_;  // of pages that left A1in
  hl::policy::PageList in_, main_, out_;
  hl_page recalled_ = HL_NO_PAGE;  // was in A1out
};

}  // namespace

constinit const hl_policy_ops kTwoQueuePolicy = hl::policy::ops_of<TwoQueue>(
    "2q", "new pages leave in the order they came; those that came back after it stay longer");

}  // namespace hinterland
