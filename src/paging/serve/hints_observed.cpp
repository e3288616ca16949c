// What the observer of a traced program hears of a hint.
#include "paging/serve/hints.hpp"

namespace hinterland {

void Hints::tell_of_found(const Hint& hint, const Wanted& wanted) {
  FaultObserver* observer = core_.observer.load(std::memory_order_acquire);  // pairs with who sets it
  if (observer == nullptr) [[likely]]
    return;
  observer->hint_found_all({.address = hint.address, .pages = wanted.now.count, .write = wanted.write});
}

// Tells the observer, where there is one.
bool Hints::is_only_noted(const Hint& hint, const Wanted& wanted) {
  FaultObserver* observer = core_.observer.load(std::memory_order_acquire);  // pairs with who sets it
  if (observer == nullptr) [[likely]]
    return false;
  HintSeen seen{.address = hint.address,
                .pages = wanted.now.count,
                .write = wanted.write,
                .sequential = hint.read_ahead_limited,
                .priority = wanted.priority};
  auto ahead = static_cast<std::int32_t>(wanted.all.count - wanted.now.count);
  seen.read_ahead = wanted.all.first < wanted.now.first ? -ahead : ahead;
  for (std::uint32_t i = 0; i < wanted.all.count; ++i) {
    PageIndex page = wanted.all.first + i;
    PageWord word = core_.pages[page].load();
    bool now = wanted.is_now(page);
    if (word.state() == PageState::far) ++(now ? seen.far : seen.far_ahead);
    if (now && word.state() == PageState::parked) ++seen.parked;
    if (now && wanted.write && word.state() == PageState::resident && !word.dirty()) ++seen.write_protect;
  }
  observer->hint(seen);
  return observer->hints_are_only_noted();
}

}  // namespace hinterland
