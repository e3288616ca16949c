// A queue of pages with a second chance, in three parts. Pages enter the fresh part, or the proven one
// if they came back soon (departures.hpp). Halfway to its end they age:
// from then on hints are listened for. At the end a page that no hint has named leaves; one that was named, or that
// came back while it was leaving, has proved to be in use, too. The proven part is drawn from when it holds more than
// its share, and what falls out of it is aged again. (Eden 4 "second chance"; Linux's active and inactive lists. Half
// the way unheard keeps the accesses of one moment, which often follow each other, from counting as a second one.)
#pragma once

#include "policy/departures.hpp"
#include "policy/pages.hpp"

namespace hinterland {

struct AgedPages : PolicyPages {
  Departures departures;

  bool create(const hl_policy_env& environment) {
    return PolicyPages::create(environment) && departures.create(environment);
  }
};

class AgedQueue {
 public:
  enum Part : std::uint8_t { kFresh = 0, kAged = 1, kProven = 2, kDoubted = 3 };
  // kDoubted: aged, after it was proven. In one list with the aged.
  static constexpr std::uint8_t kPartMask = 3;  // of the page's note; the other bits stay as they are

  std::uint64_t size() const { return parts_[kFresh].size() + parts_[kAged].size() + parts_[kProven].size(); }

  void enter(AgedPages& pages, hl_page page, Part part) {
    put(pages, page, part);
    balance(pages);
  }
  void remove(AgedPages& pages, hl_page page) {
    list_of(part_of(pages, page)).remove(pages.links, page);
    balance(pages);
  }
  // The next to leave, out of the queue; it must not be empty. `questions`: how many may still be asked.
  hl_page take(AgedPages& pages, std::uint32_t& questions) {
    for (;;) {
      PageList& from = !parts_[kAged].empty()    ? parts_[kAged]
                       : !parts_[kFresh].empty() ? parts_[kFresh]
                                                 : parts_[kProven];
      hl_page page = from.front();
      from.remove(pages.links, page);
      if (!stays(pages, page, &from == &parts_[kAged], questions)) {
        balance(pages);
        Part part = part_of(pages, page);
        pages.departures.left(page, part == kProven || part == kDoubted, size());
        return page;
      }
      put(pages, page, kProven);
    }
  }

 private:
  static Part part_of(const AgedPages& pages, hl_page page) {
    return static_cast<Part>(pages.notes[page] & kPartMask);
  }
  PageList& list_of(Part part) { return parts_[part == kDoubted ? kAged : part]; }

  bool stays(AgedPages& pages, hl_page page, bool aged, std::uint32_t& questions) {
    if (questions == 0) return false;
    --questions;
    return pages.departures.stays(page) || (aged && pages.was_hinted(page));
  }
  void put(AgedPages& pages, hl_page page, Part part) {
    pages.notes[page] = static_cast<std::uint8_t>((pages.notes[page] & ~kPartMask) | part);
    list_of(part).push_back(pages.links, page);
  }
  void age_oldest(AgedPages& pages, Part from) {
    hl_page page = parts_[from].front();
    parts_[from].remove(pages.links, page);
    put(pages, page, from == kProven ? kDoubted : kAged);
    pages.was_hinted(page);  // from now on
  }
  // A few steps towards balance at each change are enough, and bounded.
  void balance(AgedPages& pages) {
    for (int moved = 0; moved < 2 && parts_[kAged].size() + 1 < parts_[kFresh].size(); ++moved)
      age_oldest(pages, kFresh);
    auto too_many_proven = [&] {
      std::uint64_t others = parts_[kFresh].size() + parts_[kAged].size();
      return parts_[kProven].size() > pages.departures.proven_beside(others);
    };
    for (int moved = 0; moved < 2 && too_many_proven(); ++moved) age_oldest(pages, kProven);
  }

  PageList parts_[3];
};

}  // namespace hinterland
