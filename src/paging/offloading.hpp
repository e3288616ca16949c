// What Pager::compute(), apply(), compose() and patch() share: far pages that devices work on, and pages that devices
// make and that then take the place of pages of the program.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "paging/pager_impl.hpp"

namespace hinterland {

// The far page, borrowed. Nothing when the page is not far, somebody works on it, or its device does not do this:
// does_this(device). The map lock is held, so that no forked child finds the page busy.
template <typename Does>
std::optional<far::FarPage> borrow_far(Core& core, PageIndex page, const Does& does_this) {
  PageWord word;
  if (!core.pages.is_used(page) || !core.transitions.try_lock(page, PageState::far, &word)) return std::nullopt;
  const far::FarPage there = word.far_page();
  const bool does = does_this(there.device());
  if (does) core.devices.borrow({&there, 1});
  core.transitions.none(page, word);
  return does ? std::optional(there) : std::nullopt;
}

// Has the device make pages in room that is allocated for them: make(their done[]). What there is no room for, or is
// not made, does not stay among the targets. `pages` is of as many, and each has a FarPage `page`.
template <typename Page, typename Make>
void make_pages(Core& core, std::uint32_t device, std::vector<Page>* pages,
                std::vector<Pager::Impl::Replacement>* targets, const Make& make) {
  std::vector<far::FarPage> room(targets->size());
  int error = 0;
  room.resize(core.devices.allocate(device, room, &error));
  pages->resize(room.size());
  targets->resize(room.size());
  for (std::size_t i = 0; i < room.size(); ++i) {
    (*targets)[i].far = room[i];
    (*pages)[i].page = room[i].on_device();
  }
  const auto done = std::make_unique<bool[]>(room.size());
  make(done.get());
  std::size_t made = 0;
  for (std::size_t i = 0; i < room.size(); ++i) {
    if (done[i])
      (*targets)[made++] = (*targets)[i];
    else
      core.devices.release({&room[i], 1});
  }
  targets->resize(made);
}

// Puts them in the place of the program's pages, and calls replaced(which) for each; what cannot be is given back.
// The map lock is held.
template <typename Replaced>
void put_in_place(Pager::Impl& parts, std::span<Pager::Impl::Replacement> targets, const Replaced& replaced) {
  const std::size_t count = parts.replace(targets);
  for (std::size_t i = 0; i < targets.size(); ++i)
    i < count ? replaced(targets[i].which) : parts.core.devices.release({&targets[i].far, 1});
}

}  // namespace hinterland
