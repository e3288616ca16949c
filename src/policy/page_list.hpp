// Doubly linked lists of pages over one flat array of links: O(1) to add, remove and find, 8 bytes a page.
#pragma once

#include <cstdint>

#include "hinterland/policy.h"

namespace hinterland {

// Page 0 is stored as 1 and so on, so that zeroed memory means "in no list".
struct PageLink {
  std::uint32_t previous;  // page + 1, or kEnd
  std::uint32_t next;      // page + 1, or kEnd
};

// The links of all pages. A policy that looks at more of a page whenever it looks at its link keeps it in the same
// place, in a Link of its own: one cache line in the place of two.
template <typename Link>
struct LinksOf {
  static constexpr std::uint32_t kNone = 0;
  static constexpr std::uint32_t kEnd = 0xffffffff;
  Link* links = nullptr;

  bool in_list(hl_page page) const { return links[page].next != kNone; }
};
using PageLinks = LinksOf<PageLink>;

// A queue: pages enter at the back and leave at the front.
class PageList {
 public:
  bool empty() const { return front_ == PageLinks::kEnd; }
  hl_page front() const { return front_ - 1; }
  std::uint64_t size() const { return size_; }

  template <typename Link>
  void push_back(LinksOf<Link>& all, hl_page page) {
    all.links[page].previous = back_;
    all.links[page].next = PageLinks::kEnd;
    if (back_ != PageLinks::kEnd)
      all.links[back_ - 1].next = page + 1;
    else
      front_ = page + 1;
    back_ = page + 1;
    ++size_;
  }
  template <typename Link>
  void remove(LinksOf<Link>& all, hl_page page) {
    Link& link = all.links[page];
    if (link.previous != PageLinks::kEnd)
      all.links[link.previous - 1].next = link.next;
    else
      front_ = link.next;
    if (link.next != PageLinks::kEnd)
      all.links[link.next - 1].previous = link.previous;
    else
      back_ = link.previous;
    link.previous = link.next = PageLinks::kNone;
    --size_;
  }

 private:
  std::uint32_t front_ = PageLinks::kEnd;
  std::uint32_t back_ = PageLinks::kEnd;
  std::uint64_t size_ = 0;
};

}  // namespace hinterland
