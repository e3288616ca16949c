// The fewest pages that any choice of victims could fetch: the page that is wanted last of all leaves first. (Belady,
// "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966: MIN.) What is
// given back or never wanted again leaves before all others, and costs nothing: its next fault finds it untouched.
//
// It knows what a trace tells: when its faults were, and no use in between. It has all of the budget for pages, keeps
// none in frames, and reads nothing ahead, which would not save a page. So it is a bound for every policy's pages_in.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trace/trace_file.hpp"

namespace hinterland::trace {

class Belady {
 public:
  // The next access of the trace, in their order.
  void add(std::uint64_t page, bool first_touch);
  void add_all(const TraceFile& trace);
  std::uint64_t pages() const { return pages_.size(); }  // that the trace names
  // Pages fetched with room for so many, at least one.
  std::uint64_t pages_in(std::uint64_t room) const;

 private:
  static constexpr std::uint32_t kNever = UINT32_MAX;  // or as untouched memory
  struct Access {
    std::uint32_t page, next;  // by its number; the number of its next access
    bool first_touch;
  };
  struct Known {
    std::uint32_t page, last;
  };
  std::vector<Access> accesses_;
  std::unordered_map<std::uint64_t, Known> pages_;
};

}  // namespace hinterland::trace
