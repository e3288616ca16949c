// Pages of the program that others take the place of, under the map lock.
#include "paging/offloading.hpp"

#include <sys/mman.h>

namespace hinterland {

// Whether the program may write the page, and it may leave.
bool Pager::Impl::may_replace(PageIndex page) const {
  const Region* region = regions.find(core.address_of(page));
  return region != nullptr && !region->surrendered && (region->protection & PROT_WRITE) != 0 &&
         (region->attributes & kLocked) == 0;
}

std::size_t Pager::Impl::replace(std::span<Replacement> pages) {
  std::size_t replaced = 0;
  for (Replacement& each : pages) {
    if (!may_replace(each.page)) continue;
    const PageWord word = core.lock_waiting(each.page);
    const bool has_changed =
        each.instead_of && (word.state() != PageState::far || word.far_page() != *each.instead_of);
    if (has_changed)
      core.transitions.none(each.page, word);
    else if (core.transitions.replace(each.page, word, PageWord{}.far(each.far)))
      std::swap(each, pages[replaced++]);
  }
  return replaced;
}

bool Pager::Impl::replace_by_zeros(PageIndex page) {
  return may_replace(page) && core.transitions.replace(page, core.lock_waiting(page), PageWord::untouched());
}

}  // namespace hinterland
