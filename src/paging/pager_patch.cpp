// Far pages that devices patch, and pages that they fill (include/hinterland/offload_scatter.hpp), by
// make_in_place() of offloading.hpp.
//
// A patched page takes the place of the far page that it was made of, and of no other. So what another thread writes
// to the page meanwhile is never lost: then the page is not done, and the caller writes his elements himself.
#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <vector>

#include "hinterland/hint.h"
#include "hinterland/offload_pages.hpp"
#include "paging/offloading.hpp"
#include "paging/page/undisturbed.hpp"

namespace hinterland {
namespace {

// Pages of one device that can be made.
struct PatchBatch {
  std::vector<far::PatchedPage> pages;
  std::vector<Pager::Impl::Replacement> targets;
};

struct PatchWork {
  std::uint32_t size() const { return static_cast<std::uint32_t>(pages.size()); }
  std::vector<hl_patched_page> pages;
  std::vector<hl_patch> patches;
  std::array<PatchBatch, far::kDevicesMax> batches;
  std::vector<far::FarPage> borrowed;
  std::vector<std::uint32_t> made;   // numbers of the pages that are done
  std::vector<std::uint32_t> empty;  // and of those that are to be all zero
};

// Whether the pages are whole, and the elements within them.
bool have_sense(std::uint32_t element_bytes, std::span<const hl_patched_page> pages,
                std::span<const hl_patch> patches) {
  return std::ranges::all_of(pages,
                             [&](const hl_patched_page& page) {
                               return reinterpret_cast<std::uintptr_t>(page.page) % kPageSize == 0 &&
                                      page.fills <= 1 && page.reserved == 0 && page.count <= patches.size() &&
                                      page.first <= patches.size() - page.count &&
                                      (page.fills != 0 || page.count != 0);
                             }) &&
         std::ranges::all_of(patches, [&](const hl_patch& patch) {
           return patch.element < kPageSize / element_bytes && patch.reserved == 0;
         });
}

// To its device's batch.
void add_patched(Core& core, PatchWork* work, std::uint32_t number) {
  const hl_patched_page& wanted = work->pages[number];
  const auto address = reinterpret_cast<std::uintptr_t>(wanted.page);
  if (!core.window.contains(address, kPageSize)) return;
  const PageIndex page = core.window.index_of(address);
  auto patches = [&](std::uint32_t device) { return core.devices.patches(device); };
  std::optional<far::FarPage> from;
  if (wanted.fills == 0) {
    from = borrow_far(core, page, patches);
    if (!from) return;
    work->borrowed.push_back(*from);
  } else if (wanted.fill == 0 && wanted.count == 0) {
    work->empty.push_back(number);
    return;
  }
  const std::uint32_t device = from ? from->device() : core.policy.device_of(page);
  if (!patches(device)) return;
  PatchBatch& batch = work->batches[device];
  batch.pages.push_back(
      {{}, from ? std::optional(from->on_device()) : std::nullopt, wanted.fill, wanted.first, wanted.count});
  batch.targets.push_back({page, {}, number, from});
}

// Those that are to be all zero need no device. The map lock is held.
void empty_pages(Pager::Impl& parts, PatchWork* work) {
  for (const std::uint32_t number : work->empty) {
    const auto address = reinterpret_cast<std::uintptr_t>(work->pages[number].page);
    if (parts.replace_by_zeros(parts.core.window.index_of(address))) work->made.push_back(number);
  }
}

}  // namespace

int Pager::patch(std::uint32_t element_bytes, std::span<const hl_patched_page> pages,
                 std::span<const hl_patch> patches, unsigned char* done) {
  if ((element_bytes != 4 && element_bytes != 8) || pages.size() > HL_COMPUTE_MAX || patches.size() > HL_PATCHES_MAX)
    return EINVAL;
  Core& core = impl_->core;
  if (!impl_->hears_hints() || !core.devices.patch_pages()) return ENOTSUP;
  std::unique_ptr<PatchWork> work;
  {
    Undisturbed undisturbed;
    work = std::make_unique<PatchWork>();
    work->pages.resize(pages.size());
    work->patches.resize(patches.size());
  }
  // The caller's may be far: outside of the runtime, where a fault is an ordinary one.
  std::ranges::copy(pages, work->pages.begin());
  std::ranges::copy(patches, work->patches.begin());
  const bool has_sense = have_sense(element_bytes, work->pages, work->patches);
  if (has_sense) {
    Undisturbed undisturbed;
    make_in_place(
        *impl_, work.get(), [&](std::uint32_t number) { add_patched(core, work.get(), number); },
        [&](std::uint32_t device, const PatchBatch& batch, bool* are_made) {
          return core.devices.patch(device, element_bytes, batch.pages, work->patches, are_made);
        });
    MapGuard guard(*impl_);
    empty_pages(*impl_, work.get());
    count(Counter::pages_offloaded, work->made.size());
  }
  for (const std::uint32_t number : work->made) done[number] = 1;
  Undisturbed undisturbed;
  work.reset();
  return has_sense ? 0 : EINVAL;
}

}  // namespace hinterland
