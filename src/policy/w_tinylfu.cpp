// W-TinyLFU: new pages enter a small window in the order of their use. Who falls out of it has to have been used more
// often than the page that would leave the main part for it. The main part has two segments, and who is used in the
// first moves on to the second. (Einziger, Friedman and Manes, "TinyLFU: A Highly Efficient Cache Admission Policy",
// ACM Transactions on Storage 13(4), 2017: a window of a hundredth, and four fifths of the rest for the second
// segment; after ten uses for each page that there is room for, all counts are halved.)
//
// The paper's sketch counts what it cannot keep a record of. Here each page has one, so each has a count of its own:
// nothing is estimated. It is halved when it is looked at next, as often as all counts should have been meanwhile.
//
// Of pages that are there the runtime sees few uses (sieve.cpp): without hints a page's count is that of its faults.
#include <algorithm>

#include "hinterland/policy.hpp"
#include "policy/policies.hpp"

namespace hinterland {
namespace {

class WTinyLfu {
 public:
  bool create(const hl_policy_env& environment) {
    environment_ = environment;
    hints_ = hl::policy::Hints(environment);
    return pages_.create(environment);
  }
  bool holds(hl_page page) const { return pages_.in_list(page); }
  std::uint64_t size() const { return parts_[kWindow].size() + parts_[kFirst].size() + parts_[kSecond].size(); }

  void arrived(hl_page page, hl_arrival why, std::uint8_t) {
    if (why != HL_ARRIVAL_READ_AHEAD && why != HL_ARRIVAL_RETURNED) count(page);
    put(page, why == HL_ARRIVAL_REFAULT || why == HL_ARRIVAL_RETURNED ? kFirst : kWindow);
    // Until something has to leave, nobody has to win his place.
    if (!has_evicted_ && parts_[kWindow].size() > window_most()) put(take(kWindow), kFirst);
  }
  void departed(hl_page page) { parts_[pages_[page].part].remove(pages_, page); }
  void accessed(hl_page page, hl_access) {
    count(page);
    auto part = static_cast<Part>(pages_[page].part);
    departed(page);
    put(page, part == kWindow ? kWindow : kSecond);
    std::uint64_t most = (capacity() - std::min(capacity(), window_most())) * 4 / 5;
    // A few steps are enough, and bounded.
    for (int moved = 0; moved < 2 && parts_[kSecond].size() > most; ++moved) put(take(kSecond), kFirst);
  }
  hl_page choose(std::uint32_t& questions) {
    has_evicted_ = true;
    for (Part part : {kWindow, kFirst, kSecond})
      while (!parts_[part].empty() && hints_.name(parts_[part].front(), questions))
        accessed(parts_[part].front(), HL_ACCESS_ANY);
    Part main = !parts_[kFirst].empty() ? kFirst : kSecond;
    if (parts_[main].empty()) return take(kWindow);
    if (parts_[kWindow].empty()) return take(main);
    if (count_of(parts_[kWindow].front()) <= count_of(parts_[main].front())) return take(kWindow);
    hl_page leaves = take(main);
    put(take(kWindow), kFirst);
    return leaves;
  }

 private:
  enum Part : std::uint8_t { kWindow = 0, kFirst = 1, kSecond = 2 };
  static constexpr std::uint32_t kCountMost = 15, kHalvingsMask = (1u << 26) - 1;
  struct Page : hl::policy::PageLink {
    std::uint32_t part : 2;
    std::uint32_t count : 4;
    std::uint32_t halvings : 26;  // that its count has been through
  };

  std::uint64_t capacity() const {
    std::uint64_t pages = environment_.capacity(environment_.runtime);
    return pages == UINT64_MAX ? size() : pages;
  }
  std::uint64_t window_most() const { return std::max<std::uint64_t>(capacity() / 100, 1); }
  void put(hl_page page, Part part) {
    pages_[page].part = part & 3u;
    parts_[part].push_back(pages_, page);
  }
  hl_page take(Part part) { return parts_[part].pop_front(pages_); }

  std::uint32_t count_of(hl_page page) {
    std::uint32_t missed = (halvings_ - pages_[page].halvings) & kHalvingsMask;
    return missed < 4 ? pages_[page].count >> missed : 0;
  }
  void count(hl_page page) {
    std::uint32_t before = count_of(page);
    pages_[page].halvings = halvings_ & kHalvingsMask;
    pages_[page].count = std::min(before + 1, kCountMost) & kCountMost;
    if (++uses_ < 10 * std::max<std::uint64_t>(capacity(), 1)) return;
    uses_ /= 2;
    ++halvings_;
  }

  hl_policy_env environment_{};
  hl::policy::Hints hints_;
  hl::policy::LinksOf<Page> pages_;
  hl::policy::PageList parts_[3];
  std::uint64_t uses_ = 0;
  std::uint32_t halvings_ = 0;
  bool has_evicted_ = false;
};

}  // namespace

constinit const hl_policy_ops kWTinyLfuPolicy = hl::policy::ops_of<WTinyLfu>(
    "w-tinylfu", "a new page stays if it was used more often than the one that would leave for it");

}  // namespace hinterland
