// S3-FIFO: a small queue for new pages, a main queue for those that were used there, and a queue of ghosts, pages
// that left the small queue: who comes back from there goes to the main one. (Yang et al., "FIFO queues are all you
// need for cache eviction", SOSP 2023; sizes and thresholds as libCacheSim has them: a tenth, nine tenths, two uses.)
//
// Of pages that are there the runtime sees few uses (sieve.cpp); without hints the ghosts decide alone.
#include "hinterland/policy.hpp"
#include "policy/policies.hpp"

namespace hinterland {
namespace {

class S3Fifo {
 public:
  bool create(const hl_policy_env& environment) {
    environment_ = environment;
    hints_ = hl::policy::Hints(environment);
    return pages_.create(environment) && ghost_links_.create(environment);
  }
  bool holds(hl_page page) const { return pages_.in_list(page); }
  std::uint64_t size() const { return small_.size() + main_.size(); }

  std::uint32_t missed(hl_page page, hl_page*, std::uint32_t) {
    recall(page);
    return HL_OWN_READ_AHEAD;
  }
  void arrived(hl_page page, hl_arrival why, std::uint8_t) {
    recall(page);
    bool to_main = page == recalled_ || why == HL_ARRIVAL_REFAULT || (!has_evicted_ && small_.size() >= small_most());
    recalled_ = HL_NO_PAGE;
    put(page, to_main);
    pages_[page].uses = 0;
  }
  void departed(hl_page page) { list_of(page).remove(pages_, page); }
  void accessed(hl_page page, hl_access) {
    if (pages_[page].uses < kUsesMost) ++pages_[page].uses;
  }

  hl_page choose(std::uint32_t& questions) {
    has_evicted_ = true;
    bool from_main = main_.size() > capacity() - small_most() || small_.empty();
    // What is promoted from the small queue may leave it empty.
    hl_page page = from_main ? HL_NO_PAGE : choose_small(questions);
    return page != HL_NO_PAGE ? page : choose_main(questions);
  }

 private:
  struct Page : hl::policy::PageLink {
    std::uint16_t uses;  // at most kUsesMost
    std::uint16_t in_main;
  };
  static constexpr std::uint16_t kUsesToMain = 2, kUsesMost = 3;

  // Before anybody knows the budget, what is held is what there is room for.
  std::uint64_t capacity() const {
    std::uint64_t pages = environment_.capacity(environment_.runtime);
    return pages == UINT64_MAX ? size() : pages;
  }
  std::uint64_t small_most() const { return capacity() / 10; }
  hl::policy::PageList& list_of(hl_page page) { return pages_[page].in_main != 0 ? main_ : small_; }
  void put(hl_page page, bool in_main) {
    pages_[page].in_main = in_main ? 1 : 0;
    list_of(page).push_back(pages_, page);
  }
  // Before room is made for it: what leaves then may push it out of the ghosts.
  void recall(hl_page page) {
    if (!ghost_links_.in_list(page)) return;
    ghosts_.remove(ghost_links_, page);
    recalled_ = page;
  }
  void haunt(hl_page page) {
    if (ghost_links_.in_list(page)) ghosts_.remove(ghost_links_, page);
    std::uint64_t most = capacity() * 9 / 10;
    while (!ghosts_.empty() && ghosts_.size() >= most) ghosts_.pop_front(ghost_links_);
    if (most != 0) ghosts_.push_back(ghost_links_, page);
  }
  hl_page choose_small(std::uint32_t& questions) {
    while (!small_.empty()) {
      hl_page page = small_.pop_front(pages_);
      if (pages_[page].uses < kUsesToMain && !hints_.name(page, questions)) {
        haunt(page);
        return page;
      }
      put(page, true);
      pages_[page].uses = 0;
    }
    return HL_NO_PAGE;
  }
  hl_page choose_main(std::uint32_t& questions) {
    for (;;) {
      hl_page page = main_.pop_front(pages_);
      if (pages_[page].uses != 0)
        --pages_[page].uses;
      else if (!hints_.name(page, questions))
        return page;
      put(page, true);
    }
  }

  hl_policy_env environment_{};
  hl::policy::Hints hints_;
  hl::policy::LinksOf<Page> pages_;
  hl::policy::PageLinks ghost_links_;
  hl::policy::PageList small_, main_, ghosts_;
  hl_page recalled_ = HL_NO_PAGE;  // was among the ghosts
  bool has_evicted_ = false;
};

}  // namespace

constinit const hl_policy_ops kS3FifoPolicy = hl::policy::ops_of<S3Fifo>(
    "s3-fifo", "new pages leave soon, but for those that are used or come back soon after they left");

}  // namespace hinterland
