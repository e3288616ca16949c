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

// Has the device make a batch's pages in room that is allocated for them: make(done). What there is no room for, or
// is not made, does not stay among its targets.
template <typename Batch, typename Make>
void make_pages(Core& core, std::uint32_t device, Batch* batch, const Make& make) {
  std::vector<far::FarPage> room(batch->targets.size());
  int error = 0;
  room.resize(core.devices.allocate(device, room, &error));
  batch->pages.resize(room.size());
  batch->targets.resize(room.size());
  for (std::size_t i = 0; i < room.size(); ++i) {
    batch->targets[i].far = room[i];
    batch->pages[i].page = room[i].on_device();
  }
  const auto done = std::make_unique<bool[]>(room.size());
  // What has failed is not done, and found out again by who reads the pages.
  static_cast<void>(make(done.get()));
  std::size_t made = 0;
  for (std::size_t i = 0; i < room.size(); ++i) {
    if (done[i])
      batch->targets[made++] = batch->targets[i];
    else
      core.devices.release({&room[i], 1});
  }
  batch->targets.resize(made);
}

// Makes pages at devices and puts them in the place of pages of the program, in three steps:
//
// 1. add(number) of each borrows what the page is made of, notes it in work->borrowed, and adds the page to a batch
// of
//    its device: each source stays on its device as it is.
// 2. make(device, batch, done) has the device write pages that were allocated for this, and that no word names. So
//    nothing that anybody could see has changed if this fails, in whichever way.
// 3. Each page that is written takes the place of what the target was, under the target's busy bit alone: no
//    transition takes two pages. Its number is noted in work->made.
//
// Steps 1 and 3 are under the map lock, so that no fork comes between. `work` has a size(), and `batches` by device,
// whose `targets` are as many as their `pages`. Under Undisturbed.
template <typename Work, typename Add, typename Make>
void make_in_place(Pager::Impl& parts, Work* work, const Add& add, const Make& make) {
  {
    MapGuard guard(parts);
    for (std::uint32_t number = 0; number < work->size(); ++number) add(number);
  }
  for (std::uint32_t device = 0; device < work->batches.size(); ++device)
    if (auto& batch = work->batches[device]; !batch.pages.empty())
      make_pages(parts.core, device, &batch, [&](bool* done) { return make(device, batch, done); });
  {
    MapGuard guard(parts);
    for (auto& batch : work->batches) {
      const std::size_t replaced = parts.replace(batch.targets);
      for (std::size_t i = 0; i < batch.targets.size(); ++i)
        if (i < replaced)
          work->made.push_back(batch.targets[i].which);
        else
          parts.core.devices.release({&batch.targets[i].far, 1});
    }
  }
  parts.core.devices.give_back(work->borrowed);
}

}  // namespace hinterland
