#include "trace/belady.hpp"

#include <queue>

namespace hinterland::trace {

void Belady::add(std::uint64_t page, bool first_touch) {
  if (accesses_.size() == kNever) return;
  auto number = static_cast<std::uint32_t>(accesses_.size());
  auto [known, fresh] = pages_.try_emplace(page, Known{static_cast<std::uint32_t>(pages_.size()), number});
  if (!fresh && !first_touch) accesses_[known->second.last].next = number;
  known->second.last = number;
  accesses_.push_back({known->second.page, kNever, first_touch});
}

void Belady::add_all(const TraceFile& trace) {
  trace.for_each_fault([this](const FaultRecord& fault) {
    if (fault.kind <= FaultKind::refault) add(fault.page, fault.kind == FaultKind::first_touch);
  });
}

std::uint64_t Belady::pages_in(std::uint64_t room) const {
  struct Wanted {
    std::uint32_t next, page;
    bool operator<(const Wanted& other) const { return next < other.next; }
  };
  std::priority_queue<Wanted> wanted;  // with entries that are out of date
  constexpr std::uint32_t kAway = 0;   // no access is the next one after itself
  std::vector<std::uint32_t> next_of(pages_.size(), kAway);
  std::uint64_t held = 0, fetched = 0;
  auto make_room = [&] {
    while (held >= room) {
      Wanted last = wanted.top();
      wanted.pop();
      if (next_of[last.page] != last.next) continue;
      next_of[last.page] = kAway;
      --held;
    }
  };
  for (const Access& access : accesses_) {
    if (next_of[access.page] == kAway) {
      make_room();
      ++held;
      if (!access.first_touch) ++fetched;
    }
    next_of[access.page] = access.next;
    wanted.push({access.next, access.page});
  }
  return fetched;
}

}  // namespace hinterland::trace
