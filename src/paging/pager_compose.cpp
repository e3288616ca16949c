// Pages that devices compose of parts of far ones and keep (include/hinterland/offload_writes.hpp): make_in_place()
// of offloading.hpp. What is composed of is borrowed, as for what devices compute (pager_offload.cpp).
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "hinterland/hint.h"
#include "hinterland/offload_pages.hpp"
#include "paging/offloading.hpp"
#include "paging/page/undisturbed.hpp"

namespace hinterland {
namespace {

namespace elements = hl::far::detail;

// What was asked for, in local memory.
struct Asked {
  std::uint32_t element_bytes;
  std::vector<hl_composed_page> pages;
  std::vector<hl_composed_part> parts;
  std::vector<unsigned char> masks;  // of all parts, one after the other

  // The caller's may be far: outside of the runtime, where a fault is an ordinary one.
  void take(std::span<const hl_composed_page> wanted, std::span<const hl_composed_part> from) {
    std::ranges::copy(wanted, pages.begin());
    std::ranges::copy(from, parts.begin());
    const std::size_t step = elements::mask_bytes(element_bytes);
    for (std::size_t i = 0; step != 0 && i < parts.size(); ++i)
      if (parts[i].mask != nullptr) std::memcpy(masks.data() + i * step, parts[i].mask, step);
  }
  bool has_sense() const {
    return std::ranges::all_of(pages, [this](const hl_composed_page& page) { return fills(page); });
  }
  const unsigned char* mask_of(std::size_t part) const {
    return element_bytes == 0 ? nullptr : masks.data() + part * elements::mask_bytes(element_bytes);
  }

 private:
  // Its parts are there, lie on one page each, and choose as much as a page holds.
  bool fills(const hl_composed_page& page) const {
    if (reinterpret_cast<std::uintptr_t>(page.page) % kPageSize != 0 || page.count > parts.size() ||
        page.first > parts.size() - page.count)
      return false;
    std::size_t chosen = 0;
    for (std::size_t i = page.first; i < page.first + page.count; ++i) {
      const hl_composed_part& part = parts[i];
      const std::size_t offset = reinterpret_cast<std::uintptr_t>(part.address) % kPageSize;
      if (part.bytes == 0 || part.bytes > kPageSize - offset || (part.mask == nullptr) != (element_bytes == 0))
        return false;
      const auto bytes = elements::chosen_bytes(element_bytes, offset, part.bytes, mask_of(i));
      if (!bytes) return false;
      chosen += *bytes;
    }
    return chosen == kPageSize;
  }
};

// Pages of one device that can be composed.
struct Batch {
  std::vector<far::ComposedPage> pages;
  std::vector<far::ComposedPart> parts;
  std::vector<Pager::Impl::Replacement> targets;
};

struct Work {
  std::uint32_t size() const { return static_cast<std::uint32_t>(asked.pages.size()); }
  Asked asked;
  std::array<Batch, far::kDevicesMax> batches;
  std::vector<far::FarPage> borrowed;
  std::vector<std::uint32_t> made;  // numbers of the pages that are done
};

struct Source {
  far::FarPage far;
  bool is_here;  // resident or parked as well
};

// What the page holds is on the device, too: its far page, borrowed.
std::optional<Source> borrow(Core& core, PageIndex page, std::uint32_t device) {
  if (!core.pages.is_used(page)) return std::nullopt;
  const PageState state = core.pages[page].load().state();
  const bool may_be = state == PageState::far || state == PageState::parked || state == PageState::resident;
  PageWord word;
  if (!may_be || !core.transitions.try_lock(page, state, &word)) return std::nullopt;
  std::optional<far::FarPage> far;
  if (state == PageState::parked)
    far = core.frames[word.frame()].far;
  else if (word.has_far() && !word.dirty() && !word.discardable())  // I3: it equals its far page
    far = word.far_page();
  if (far && far->device() != device) far = std::nullopt;
  if (far) core.devices.borrow({&*far, 1});
  core.transitions.none(page, word);
  return far ? std::optional(Source{*far, state != PageState::far}) : std::nullopt;
}

// Adds a page to its device's batch where all of its parts are there, and some of them nowhere else.
void add(Core& core, Work* work, std::uint32_t number) {
  const hl_composed_page& wanted = work->asked.pages[number];
  const auto address = reinterpret_cast<std::uintptr_t>(wanted.page);
  if (!core.window.contains(address, kPageSize)) return;
  const PageIndex page = core.window.index_of(address);
  const std::uint32_t device = core.policy.device_of(page);
  if (!core.devices.composes(device)) return;
  Batch& batch = work->batches[device];
  const std::size_t parts_before = batch.parts.size();
  bool all_here = true;
  for (std::size_t i = wanted.first; i < wanted.first + wanted.count; ++i) {
    const hl_composed_part& part = work->asked.parts[i];
    const auto from = reinterpret_cast<std::uintptr_t>(part.address);
    std::optional<Source> source;
    if (core.window.contains(from, part.bytes)) source = borrow(core, core.window.index_of(from), device);
    if (!source) {
      batch.parts.resize(parts_before);
      return;
    }
    work->borrowed.push_back(source->far);
    all_here = all_here && source->is_here;
    batch.parts.push_back({source->far.on_device(), static_cast<std::uint16_t>(from % kPageSize),
                           static_cast<std::uint16_t>(part.bytes),
                           reinterpret_cast<const std::byte*>(work->asked.mask_of(i))});
  }
  if (all_here) return batch.parts.resize(parts_before);
  batch.pages.push_back({{}, static_cast<std::uint32_t>(parts_before), wanted.count});
  batch.targets.push_back({page, {}, number, std::nullopt});
}

}  // namespace

int Pager::compose(std::uint32_t element_bytes, std::span<const hl_composed_page> pages,
                   std::span<const hl_composed_part> parts, unsigned char* done) {
  if ((element_bytes != 0 && element_bytes != 4 && element_bytes != 8) || pages.size() > HL_COMPUTE_MAX ||
      parts.size() > HL_COMPUTE_MAX)
    return EINVAL;
  Core& core = impl_->core;
  if (!impl_->hears_hints() || !core.devices.compose_pages()) return ENOTSUP;
  std::unique_ptr<Work> work;
  {
    Undisturbed undisturbed;
    work = std::make_unique<Work>(
        Work{{element_bytes, std::vector<hl_composed_page>(pages.size()), std::vector<hl_composed_part>(parts.size()),
              std::vector<unsigned char>(parts.size() * elements::mask_bytes(element_bytes))},
             {},
             {},
             {}});
  }
  work->asked.take(pages, parts);
  const bool has_sense = work->asked.has_sense();
  if (has_sense) {
    Undisturbed undisturbed;
    make_in_place(
        *impl_, work.get(), [&](std::uint32_t number) { add(core, work.get(), number); },
        [&](std::uint32_t device, const Batch& batch, bool* are_made) {
          return core.devices.compose(device, element_bytes, batch.pages, batch.parts, are_made);
        });
    std::uint64_t sources = 0;
    for (const std::uint32_t number : work->made) sources += work->asked.pages[number].count;
    count(Counter::pages_offloaded, sources);
  }
  for (const std::uint32_t number : work->made) done[number] = 1;
  Undisturbed undisturbed;
  work.reset();
  return has_sense ? 0 : EINVAL;
}

}  // namespace hinterland
