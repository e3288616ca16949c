// What policies in C++ have in common: lists of pages, and the calls of hinterland/policy.h made from a class.
#ifndef HINTERLAND_POLICY_HPP
#define HINTERLAND_POLICY_HPP

#include <hinterland/policy.h>

#include <cstdint>
#include <new>

namespace hl::policy {

// Page 0 is stored as 1 and so on, so that zeroed memory means "in no list".
struct PageLink {
  std::uint32_t previous;  // page + 1, or kEnd
  std::uint32_t next;      // page + 1, or kEnd
};

// The links of all pages, 8 bytes each. A policy that looks at more of a page whenever it looks at its link keeps it
// in the same place, in a Link of its own: one cache line in the place of two.
template <typename Link>
struct LinksOf {
  static constexpr std::uint32_t kNone = 0;
  static constexpr std::uint32_t kEnd = 0xffffffff;
  Link* links = nullptr;

  // False when there is no memory for them.
  bool create(const hl_policy_env& environment) {
    links = static_cast<Link*>(environment.reserve(std::uint64_t{environment.window_pages} * sizeof(Link)));
    return links != nullptr;
  }
  bool in_list(hl_page page) const { return links[page].next != kNone; }
  Link& operator[](hl_page page) { return links[page]; }
};
using PageLinks = LinksOf<PageLink>;

// A queue: pages enter at the back and leave at the front; O(1) to add, remove and go on to the next. A page is in
// one list at a time of those that share links.
class PageList {
 public:
  bool empty() const { return front_ == PageLinks::kEnd; }
  // There must be one.
  hl_page front() const { return front_ - 1; }
  hl_page back() const { return back_ - 1; }
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
  // There must be one.
  template <typename Link>
  hl_page pop_front(LinksOf<Link>& all) {
    hl_page page = front();
    remove(all, page);
    return page;
  }
  template <typename Link>
  void move_to_back(LinksOf<Link>& all, hl_page page) {
    remove(all, page);
    push_back(all, page);
  }
  // The page that entered after this one; HL_NO_PAGE for the last.
  template <typename Link>
  static hl_page after(const LinksOf<Link>& all, hl_page page) {
    std::uint32_t next = all.links[page].next;
    return next == PageLinks::kEnd ? HL_NO_PAGE : next - 1;
  }

 private:
  std::uint32_t front_ = PageLinks::kEnd;
  std::uint32_t back_ = PageLinks::kEnd;
  std::uint64_t size_ = 0;
};

// Whether a hint named the page lately; each question counts against `questions`, of which there are only so many.
class Hints {
 public:
  Hints() = default;
  explicit Hints(const hl_policy_env& environment)
      : was_hinted_(environment.was_hinted), runtime_(environment.runtime) {}
  bool name(hl_page page, std::uint32_t& questions) const {
    if (was_hinted_ == nullptr || questions == 0) return false;
    --questions;
    return was_hinted_(runtime_, page) != 0;
  }

 private:
  int (*was_hinted_)(void*, hl_page) = nullptr;
  void* runtime_ = nullptr;
};

// The calls of the C interface, made from a class that has
//   bool create(const hl_policy_env&)           false: not enough memory
//   bool holds(hl_page) const
//   void arrived(hl_page, hl_arrival, std::uint8_t priority)    of a page that it does not hold
//   void departed(hl_page)                                      of a page that it holds
//   hl_page choose(std::uint32_t& questions)    it holds one at least; it no longer holds what it returns
//   std::uint64_t size() const
// and may have
//   void accessed(hl_page, hl_access)                           of a page that it holds
//   std::uint32_t missed(hl_page, hl_page* next, std::uint32_t max)
//   void tick(std::uint64_t now_ns)
//   void report(hl_policy_report&)
//   void mapped(const hl_mapping&)
//   void unmapped(std::uint64_t place, std::uint64_t pages)
//   bool admits(hl_page, hl_arrival)
//   std::uint32_t hinted(hl_page, hl_page* next, std::uint32_t max)
//   bool worth_a_frame(hl_page)                 of a page that it has just chosen
// An object of it lies in zeroed memory of the runtime's, and is never destroyed.
template <typename Policy>
struct Calls {
  static Policy& of(void* state) { return *static_cast<Policy*>(state); }

  static void* create(const hl_policy_env* environment) {
    void* place = environment->reserve(sizeof(Policy));
    if (place == nullptr) return nullptr;
    auto* policy = new (place) Policy;
    return policy->create(*environment) ? policy : nullptr;
  }
  static void arrived(void* state, hl_page first, std::uint32_t count, hl_arrival why, std::uint8_t priority) {
    for (hl_page page = first; page != first + count; ++page)
      if (!of(state).holds(page)) of(state).arrived(page, why, priority);
  }
  static void departed(void* state, hl_page first, std::uint32_t count) {
    for (hl_page page = first; page != first + count; ++page)
      if (of(state).holds(page)) of(state).departed(page);
  }
  static std::uint32_t choose_victims(void* state, hl_page* out, std::uint32_t max) {
    // Where all pages are in use, some must leave anyway.
    std::uint32_t chosen = 0, questions = 2 * max + 16;
    while (chosen < max && of(state).size() != 0) out[chosen++] = of(state).choose(questions);
    return chosen;
  }
  static std::uint64_t size(void* state) { return of(state).size(); }
  static void accessed(void* state, hl_page page, hl_access how) {
    if (of(state).holds(page)) of(state).accessed(page, how);
  }
  static std::uint32_t missed(void* state, hl_page page, hl_page* next, std::uint32_t max) {
    return of(state).missed(page, next, max);
  }
  static std::uint32_t hinted(void* state, hl_page page, hl_page* next, std::uint32_t max) {
    return of(state).hinted(page, next, max);
  }
  static void tick(void* state, std::uint64_t now_ns) { of(state).tick(now_ns); }
  static void report(void* state, hl_policy_report* out) { of(state).report(*out); }
  static void mapped(void* state, const hl_mapping* mapping) { of(state).mapped(*mapping); }
  static void unmapped(void* state, std::uint64_t place, std::uint64_t pages) { of(state).unmapped(place, pages); }
  static int worth_a_frame(void* state, hl_page page) { return of(state).worth_a_frame(page) ? 1 : 0; }
  static int admits(void* state, hl_page page, hl_arrival why) { return of(state).admits(page, why) ? 1 : 0; }
};

template <typename Policy>
constexpr hl_policy_ops ops_of(const char* name, const char* help) {
  using Made = Calls<Policy>;
  hl_policy_ops ops{HL_POLICY_ABI_VERSION, name,      help, Made::create, Made::arrived, Made::departed,
                    Made::choose_victims,  Made::size};
  if constexpr (requires { &Policy::accessed; }) ops.accessed = Made::accessed;
  if constexpr (requires { &Policy::missed; }) ops.missed = Made::missed;
  if constexpr (requires { &Policy::tick; }) ops.tick = Made::tick;
  if constexpr (requires { &Policy::report; }) ops.report = Made::report;
  if constexpr (requires { &Policy::mapped; }) ops.mapped = Made::mapped;
  if constexpr (requires { &Policy::unmapped; }) ops.unmapped = Made::unmapped;
  if constexpr (requires { &Policy::admits; }) ops.admits = Made::admits;
  if constexpr (requires { &Policy::hinted; }) ops.hinted = Made::hinted;
  if constexpr (requires { &Policy::worth_a_frame; }) ops.worth_a_frame = Made::worth_a_frame;
  return ops;
}

}  // namespace hl::policy

#endif
