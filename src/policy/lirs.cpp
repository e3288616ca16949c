// LIRS: pages that were used twice within a short time (LIR) have nearly all of local memory, and leave only when one
// with a shorter such time takes their place. All others (HIR) pass through a short queue; a stack of pages in the
// order of their last use, with those that left not long ago, tells which of them come back soon enough. (Jiang and
// Zhang, "LIRS: An Efficient Low Inter-reference Recency Set Replacement Policy", SIGMETRICS 2002: S and Q, a
// hundredth of the room for HIR pages, as there; at most twice the room's pages in S, as libCacheSim has it.)
//
// Of pages that are there the runtime sees few uses (sieve.cpp): without hints, a page's two uses are two faults.
#include <algorithm>

#include "hinterland/policy.hpp"
#include "policy/policies.hpp"

namespace hinterland {
namespace {

class Lirs {
 public:
  bool create(const hl_policy_env& environment) {
    environment_ = environment;
    hints_ = hl::policy::Hints(environment);
    return stack_links_.create(environment) && queue_links_.create(environment);
  }
  bool holds(hl_page page) const { return stack_links_.links[page].is_there != 0; }
  std::uint64_t size() const { return low_count_ + queue_.size(); }

  void arrived(hl_page page, hl_arrival why, std::uint8_t) {
    if (queue_links_.in_list(page)) gone_.remove(queue_links_, page);
    stack_links_[page].is_there = 1;
    bool is_use = why != HL_ARRIVAL_READ_AHEAD && why != HL_ARRIVAL_RETURNED;
    bool known = stack_links_.in_list(page);
    // Until something has to leave, there is room for all.
    bool is_low = is_use && (known || (!has_evicted_ && low_count_ < low_most()));
    if (is_use) touch(page);
    if (is_low) {
      make_low(page);
    } else {
      queue_.push_back(queue_links_, page);
      prune();  // it may be all that there is
    }
    limit_stack();
  }
  void departed(hl_page page) {
    Page& gone = stack_links_[page];
    if (gone.is_low != 0)
      --low_count_;
    else
      queue_.remove(queue_links_, page);
    gone.is_low = gone.is_there = 0;
    if (stack_links_.in_list(page)) stack_.remove(stack_links_, page);
    prune();
  }
  void accessed(hl_page page, hl_access) {
    bool known = stack_links_.in_list(page);
    touch(page);
    if (stack_links_[page].is_low != 0) {
      prune();
    } else if (known) {
      queue_.remove(queue_links_, page);
      make_low(page);
    } else {
      queue_.move_to_back(queue_links_, page);
      prune();
    }
    limit_stack();
  }
  hl_page choose(std::uint32_t& questions) {
    has_evicted_ = true;
    while (!queue_.empty() && hints_.name(queue_.front(), questions)) accessed(queue_.front(), HL_ACCESS_ANY);
    if (queue_.empty()) demote();
    hl_page page = queue_.pop_front(queue_links_);
    stack_links_[page].is_there = 0;
    if (stack_links_.in_list(page)) gone_.push_back(queue_links_, page);
    return page;
  }

 private:
  struct Page : hl::policy::PageLink {
    std::uint32_t is_low : 1;
    std::uint32_t is_there : 1;
  };

  std::uint64_t capacity() const {
    std::uint64_t pages = environment_.capacity(environment_.runtime);
    return pages == UINT64_MAX ? size() : pages;
  }
  std::uint64_t low_most() const {
    std::uint64_t pages = capacity();
    return pages - std::min(pages, std::max<std::uint64_t>(pages / 100, 1));
  }
  void touch(hl_page page) {
    if (stack_links_.in_list(page)) stack_.remove(stack_links_, page);
    stack_.push_back(stack_links_, page);
  }
  // It is at the top of the stack.
  void make_low(hl_page page) {
    stack_links_[page].is_low = 1;
    ++low_count_;
    // The budget may have become smaller; a few steps are enough, and bounded.
    for (int demoted = 0; demoted < 2 && low_count_ > low_most(); ++demoted) demote();
    prune();
  }
  // The LIR page whose last use is the longest ago, at the bottom of the stack, becomes a HIR page; there is one.
  void demote() {
    prune();
    hl_page page = stack_.pop_front(stack_links_);
    stack_links_[page].is_low = 0;
    --low_count_;
    queue_.push_back(queue_links_, page);
    prune();
  }
  // Below the last LIR page the stack tells nothing more: who comes back from there was away for longer than all.
  void prune() {
    while (!stack_.empty() && stack_links_[stack_.front()].is_low == 0) drop(stack_.front());
  }
  void limit_stack() {
    for (std::uint64_t most = 2 * capacity(); stack_.size() > most && !gone_.empty();) drop(gone_.front());
  }
  void drop(hl_page page) {
    if (stack_links_[page].is_there == 0) gone_.remove(queue_links_, page);
    stack_.remove(stack_links_, page);
  }

  hl_policy_env environment_{};
  hl::policy::Hints hints_;
  hl::policy::LinksOf<Page> stack_links_;
  hl::policy::PageLinks queue_links_;  // of queue_ and gone_
  hl::policy::PageList stack_;         // S: the page used last at its back
  hl::policy::PageList queue_;         // Q: HIR pages that are there
  hl::policy::PageList gone_;          // HIR pages of S that are not, in the order in which they left
  std::uint64_t low_count_ = 0;
  bool has_evicted_ = false;
};

}  // namespace

constinit const hl_policy_ops kLirsPolicy = hl::policy::ops_of<Lirs>(
    "lirs", "pages that were wanted again soon stay; all others pass through a hundredth of local memory");

}  // namespace hinterland
