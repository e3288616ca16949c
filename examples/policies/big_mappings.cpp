// Pages of mappings that are larger than local memory need not stay: they leave first, so that a pass over such a
// mapping does not push out what is small and used often. The others leave in the order in which they came. Shows a
// policy that is told of mappings and of time, that does not admit all pages, and that has figures of its own.
//
//   c++ -std=c++20 -O2 -fPIC -shared big_mappings.cpp -o big_mappings.so
//   hinterland run --policy ./big_mappings.so -- ./program &
//   hinterland stat PID
#include <hinterland/policy.hpp>

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace {

class BigMappings {
 public:
  bool create(const hl_policy_env& environment) {
    environment_ = environment;
    return links_.create(environment);
  }
  bool holds(hl_page page) const { return links_.in_list(page); }
  std::uint64_t size() const { return pages_.size(); }
  void arrived(hl_page page, hl_arrival, std::uint8_t) { pages_.push_back(links_, page); }
  void departed(hl_page page) { pages_.remove(links_, page); }
  hl_page choose(std::uint32_t&) { return pages_.pop_front(links_); }

  void mapped(const hl_mapping& mapping) {
    bool is_big = mapping.pages > environment_.capacity(environment_.runtime);
    if (is_big && count_ < std::size(big_)) big_[count_++] = {mapping.place, mapping.place + mapping.pages};
  }
  void unmapped(std::uint64_t place, std::uint64_t pages) {
    Range* end = std::remove_if(big_, big_ + count_, [=](const Range& known) {
      return known.first < place + pages && place < known.end;  // a part of it is enough
    });
    count_ = static_cast<std::uint32_t>(end - big_);
  }
  bool admits(hl_page page, hl_arrival) {
    std::uint64_t place = environment_.place_of(environment_.runtime, page);
    bool in_big = std::any_of(big_, big_ + count_,
                              [=](const Range& known) { return known.first <= place && place < known.end; });
    not_admitted_ += in_big ? 1 : 0;
    return !in_big;
  }
  void tick(std::uint64_t now_ns) {
    std::uint64_t span_ns = std::max<std::uint64_t>(now_ns - last_ns_, 1);
    per_second_ = (not_admitted_ - last_count_) * 1'000'000'000 / span_ns;
    last_ns_ = now_ns;
    last_count_ = not_admitted_;
  }
  void report(hl_policy_report& out) {
    std::snprintf(out.text, sizeof out.text, "%u mappings are larger than local memory", count_);
    out.figures[0] = {"not_admitted", not_admitted_};
    out.figures[1] = {"not_admitted_per_s", per_second_};
    out.count = 2;
  }

 private:
  struct Range {
    std::uint64_t first, end;  // places
  };
  hl_policy_env environment_{};
  hl::policy::PageLinks links_;
  hl::policy::PageList pages_;
  Range big_[32];
  std::uint32_t count_ = 0;
  std::uint64_t not_admitted_ = 0, last_count_ = 0, last_ns_ = 0, per_second_ = 0;
};

}  // namespace

HL_POLICY_PLUGIN = hl::policy::ops_of<BigMappings>("big-mappings", "what lies in very large mappings leaves first");
