#include "paging/serve/bringer.hpp"

namespace hinterland {

bool Bringer::begin(PageIndex page, PageState state, bool written) {
  PageWord word;
  if (!core_.transitions.try_lock(page, state, &word)) return false;
  if (state == PageState::far) {
    bool writable = written || word.often_written() || core_.forecast.expects_write_unsampled(page);
    core_.transitions.begin_arrival(page, word, writable);
  }
  return true;
}

PageRun Bringer::begin_around(PageIndex page, PageRun wanted, std::uint32_t most, PageState state) {
  std::uint64_t first = page.value, end = page.value + 1;
  while (end < wanted.end().value && end - first < most && begin({end}, state)) ++end;
  while (first > wanted.first.value && end - first < most && begin({first - 1}, state)) --first;
  return {{first}, static_cast<std::uint32_t>(end - first)};
}

void Bringer::make_room(std::uint32_t pages, Evictor& direct) {
  if (core_.budget.has_room(pages)) return;
  count(Counter::reclaim_direct_faults);
  while (!core_.budget.has_room(pages)) {
    std::size_t freed = direct.reclaim(pages_to_reclaim(pages));
    if (freed == 0) return;
    count(Counter::reclaim_direct_pages, freed);
  }
}

}  // namespace hinterland
