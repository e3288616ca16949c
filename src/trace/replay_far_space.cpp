#include "trace/replay_far_space.hpp"

#include <algorithm>

namespace hinterland::trace {

// As Space::take_pages_locked(): long runs first, then whatever is free.
std::vector<std::uint64_t> ReplayFarSpace::take(std::uint32_t count) {
  std::vector<std::uint64_t> places;
  while (places.size() < count) {
    if (slabs_[current_].used == kSlabPages) find_slab();
    std::size_t end = std::min<std::size_t>(count, places.size() + kSlabPages - slabs_[current_].used);
    for (std::uint32_t shortest :
         {std::min<std::uint32_t>(static_cast<std::uint32_t>(end - places.size()), kRunPages), 1u})
      while (places.size() < end && take_run(shortest, end, places)) {
      }
  }
  return places;
}

// As Space::take_run_locked().
bool ReplayFarSpace::take_run(std::uint32_t shortest, std::size_t count, std::vector<std::uint64_t>& places) {
  Slab& slab = slabs_[current_];
  shortest = std::min(shortest, static_cast<std::uint32_t>(count - places.size()));
  std::uint32_t run = 0;
  for (std::uint32_t step = 0, page = cursor_; step < kSlabPages; ++step, ++page) {
    if (page == kSlabPages) page = run = 0;
    run = slab.taken[page] ? 0 : run + 1;
    if (run < shortest) continue;
    for (page = page + 1 - run; places.size() < count && page < kSlabPages && !slab.taken[page]; ++page) {
      slab.taken[page] = true;
      ++slab.used;
      places.push_back(1 + current_ * kSlabPages + page);
    }
    cursor_ = page % kSlabPages;
    return true;
  }
  return false;
}

// As Space::find_slab_locked() and grow_locked().
void ReplayFarSpace::find_slab() {
  auto emptiest =
      std::min_element(slabs_.begin(), slabs_.end(), [](const Slab& a, const Slab& b) { return a.used < b.used; });
  if (emptiest->used >= kSlabPages - kReusePagesMin) emptiest = slabs_.emplace(slabs_.end());
  current_ = static_cast<std::size_t>(emptiest - slabs_.begin());
  cursor_ = 0;
}

void ReplayFarSpace::let_go(std::uint64_t* place) {
  if (*place == kNone) return;
  Slab& slab = slabs_[(*place - 1) / kSlabPages];
  slab.taken[(*place - 1) % kSlabPages] = false;
  --slab.used;
  *place = kNone;
}

}  // namespace hinterland::trace
