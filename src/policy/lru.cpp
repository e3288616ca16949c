// Least recently used, as far as hints tell: lists by the time of the last access that is known of. Pages enter the
// youngest list. From the end of each list they pass into the next older one, unless a hint has named them while they
// were in it: then they are young again. The oldest list is the next to leave. (Eden 4 "LRU" with N lists; Linux's
// multi-generational LRU.)
//
// Access times are known to a list's length: hints on pages that are there go unheard until somebody asks. Without
// hints, pages leave in the order they came.
#include <array>
#include <new>

#include "policy/pages.hpp"
#include "policy/policies.hpp"

namespace hinterland {
namespace {

constexpr std::size_t kLists = 4;  // docs/adr/0019-recency-from-hints.md

class Lru {
 public:
  PolicyPages pages;
  std::uint64_t size() const { return size_; }

  // By the access that brought it.
  void enter(hl_page page) {
    put(page, 0);
    ++size_;
    balance();
  }
  void remove(hl_page page) {
    lists_[pages.notes[page] & kListMask].remove(pages.links, page);
    --size_;
    balance();
  }
  // There must be one.
  hl_page take(std::uint32_t& questions) {
    for (;;) {
      std::size_t oldest = kLists - 1;
      while (lists_[oldest].empty()) --oldest;
      hl_page page = lists_[oldest].front();
      lists_[oldest].remove(pages.links, page);
      // For pages of the youngest list nobody has listened yet.
      if (oldest == 0 || questions == 0 || (--questions, !pages.was_hinted(page))) {
        --size_;
        balance();
        return page;
      }
      put(page, kHeard);
    }
  }

 private:
  // A page's note: its list, and whether its hints are listened for.
  static constexpr std::uint8_t kListMask = 0x7f, kHeard = 0x80;

  void put(hl_page page, std::size_t note) {
    pages.notes[page] = static_cast<std::uint8_t>(note);
    lists_[note & kListMask].push_back(pages.links, page);
  }
  // Each list but the oldest holds at most its part of all pages. Two steps a list at each change are enough, and
  // bounded.
  void balance() {
    std::uint64_t most = size_ / kLists + 1;
    for (std::size_t list = 0; list + 1 < kLists; ++list)
      for (int moved = 0; moved < 2 && lists_[list].size() > most; ++moved) grow_older(list);
  }
  void grow_older(std::size_t list) {
    hl_page page = lists_[list].front();
    lists_[list].remove(pages.links, page);
    bool heard = (pages.notes[page] & kHeard) != 0;  // else what is heard is the arrival itself
    bool used = pages.was_hinted(page) && heard;
    put(page, kHeard | (used ? 0 : list + 1));
  }

  std::array<PageList, kLists> lists_;  // the youngest first
  std::uint64_t size_ = 0;
};

void* create(const hl_policy_env* environment) {
  void* place = environment->reserve(sizeof(Lru));
  if (place == nullptr) return nullptr;
  auto* lru = new (place) Lru;
  return lru->pages.create(*environment) ? lru : nullptr;
}

void arrived(void* state, hl_page first, uint32_t count, hl_arrival, uint8_t) {
  auto* lru = static_cast<Lru*>(state);
  for (hl_page page = first; page != first + count; ++page)
    if (!lru->pages.links.in_list(page)) lru->enter(page);
}

void departed(void* state, hl_page first, uint32_t count) {
  auto* lru = static_cast<Lru*>(state);
  for (hl_page page = first; page != first + count; ++page)
    if (lru->pages.links.in_list(page)) lru->remove(page);
}

uint32_t choose_victims(void* state, hl_page* out, uint32_t max) {
  auto* lru = static_cast<Lru*>(state);
  std::uint32_t chosen = 0, questions = questions_for(max);
  while (chosen < max && lru->size() != 0) out[chosen++] = lru->take(questions);
  return chosen;
}

uint64_t size(void* state) { return static_cast<Lru*>(state)->size(); }

}  // namespace

const hl_policy_ops kLruPolicy = {HL_POLICY_ABI_VERSION,
                                  "lru",
                                  "the page that hints named least recently leaves first",
                                  create,
                                  arrived,
                                  departed,
                                  choose_victims,
                                  size,
                                  nullptr,
                                  nullptr,
                                  0};

}  // namespace hinterland
