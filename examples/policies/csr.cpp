// For graphs in CSR form: the edges are by far the most, and gone through from end to end, again and again; what is
// kept for each vertex is used everywhere. So what is read ahead, and what is fetched right behind it, leaves first,
// behind a window of the pages that came last; the newest of what lies behind the window leaves, so that the rest is
// still there when the next pass begins. All other pages leave only when there are no such ones. (ExtMem, ATC
// 2024, 4.3: the window of "EXTMEM-PR", which is told where the edges are.) Settings: pages of the window, 512
// without.
//
//   c++ -std=c++20 -O2 -fPIC -shared csr.cpp -o csr.so
//   hinterland run --policy ./csr.so -- ./pagerank
#include <hinterland/policy.hpp>

#include <cstdlib>

namespace {

class Csr {
 public:
  bool create(const hl_policy_env& environment) {
    environment_ = environment;
    if (environment.settings[0] != '\0') window_most_ = std::strtoul(environment.settings, nullptr, 10);
    return pages_.create(environment);
  }
  bool holds(hl_page page) const { return pages_.in_list(page); }
  std::uint64_t size() const { return lists_[kVertices].size() + lists_[kWindow].size() + lists_[kBehind].size(); }

  void arrived(hl_page page, hl_arrival why, std::uint8_t) {
    bool in_stream = why == HL_ARRIVAL_READ_AHEAD || (why == HL_ARRIVAL_FAULT && follows_a_stream(page));
    last_ = page;
    put(page, in_stream ? kWindow : kVertices);
    if (lists_[kWindow].size() > window_most_) put(lists_[kWindow].pop_front(pages_), kBehind);
  }
  void departed(hl_page page) { lists_[pages_[page].list].remove(pages_, page); }
  hl_page choose(std::uint32_t&) {
    if (lists_[kBehind].empty()) return lists_[lists_[kVertices].empty() ? kWindow : kVertices].pop_front(pages_);
    hl_page page = lists_[kBehind].back();
    departed(page);
    return page;
  }
  void report(hl_policy_report& out) {
    out.figures[0] = {"stream_pages", lists_[kWindow].size() + lists_[kBehind].size()};
    out.figures[1] = {"other_pages", lists_[kVertices].size()};
    out.count = 2;
  }

 private:
  enum List : std::uint32_t { kVertices, kWindow, kBehind };
  struct Page : hl::policy::PageLink {
    std::uint32_t list;
  };
  void put(hl_page page, List list) {
    pages_[page].list = list;
    lists_[list].push_back(pages_, page);
  }
  // A page that was asked for comes together with those behind it, as one run: of that, too, only the first is alone.
  bool follows_a_stream(hl_page page) const {
    std::uint64_t place = environment_.place_of(environment_.runtime, page);
    hl_page before = place != 0 ? environment_.page_at(environment_.runtime, place - 1) : HL_NO_PAGE;
    return before != HL_NO_PAGE && (before == last_ || (holds(before) && pages_.links[before].list == kWindow));
  }

  hl_policy_env environment_{};
  hl::policy::LinksOf<Page> pages_;
  hl::policy::PageList lists_[3];
  std::uint64_t window_most_ = 512;
  hl_page last_ = HL_NO_PAGE;  // that arrived
};

}  // namespace

HL_POLICY_PLUGIN = hl::policy::ops_of<Csr>("csr", "what is gone through leaves first, behind a window");
