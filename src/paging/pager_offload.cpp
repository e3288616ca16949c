// What devices compute on far pages, in the place of fetching them (include/hinterland/offload.hpp).
//
// A far page is borrowed first: it stays as it is on its device, whatever becomes of the page in the program
// meanwhile. So what is computed is what the page held at one moment after the call began. Pages that are not far are
// left to the caller, who reads them as ever.
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

static_assert(elements::page_bytes == kPageSize);

struct Wanted {
  const hl_computation& what;
  std::uintptr_t address;
  std::size_t count;
  const std::size_t* indices;
  std::size_t size;  // bytes of an element

  bool has_sense() const {
    if (!elements::is_valid(what) || address % size != 0 || count > (~std::uintptr_t{0} - address) / size)
      return false;
    return (indices != nullptr) == (what.operation == elements::pick) && pieces() <= HL_COMPUTE_MAX;
  }
  std::size_t pieces() const {
    if (count == 0 || indices != nullptr) return count;
    return ((address + count * size - 1) >> kPageShift) - (address >> kPageShift) + 1;
  }
  struct Bytes {
    std::uintptr_t address;
    std::size_t length;
  };
  Bytes piece(std::size_t i) const {
    if (indices != nullptr) return {address + indices[i] * size, size};
    std::uintptr_t first = i == 0 ? address : page_floor(address) + i * kPageSize;
    return {first, std::min(page_floor(first) + kPageSize, address + count * size) - first};
  }
};

// Pieces on one device, and which of the caller's they are.
struct Batch {
  explicit operator bool() const { return !pieces.empty(); }
  void make_room(std::size_t bytes) {
    results = std::make_unique<std::byte[]>(bytes);
    done = std::make_unique<bool[]>(pieces.size());
  }
  std::vector<far::Piece> pieces;
  std::vector<std::uint32_t> which;
  std::unique_ptr<std::byte[]> results;
  std::unique_ptr<bool[]> done;
};

// Everything that one call needs, in local memory.
struct Work {
  std::array<Batch, far::kDevicesMax> batches;
  std::vector<far::FarPage> borrowed;

  void add(far::FarPage page, std::uintptr_t address, std::size_t bytes, std::uint64_t word, std::size_t number) {
    borrowed.push_back(page);
    Batch& batch = batches[page.device()];
    batch.pieces.push_back(
        {page.on_device(), static_cast<std::uint16_t>(address % kPageSize), static_cast<std::uint16_t>(bytes), word});
    batch.which.push_back(static_cast<std::uint32_t>(number));
  }
};

void gather(Core& core, const Wanted& wanted, Work* work) {
  for (std::size_t i = 0, n = wanted.pieces(); i < n; ++i) {
    const Wanted::Bytes bytes = wanted.piece(i);
    if (!core.window.holds(bytes.address)) continue;
    auto far = borrow_far(core, core.window.index_of(bytes.address), [&](std::uint32_t device) {
      return (core.devices.operations(device) >> wanted.what.operation & 1) != 0;
    });
    if (far) work->add(*far, bytes.address, bytes.length, 0, i);
  }
}

void compute_batch(Core& core, std::uint32_t device, const hl_computation& what, Batch* batch) {
  batch->make_room(elements::result_bytes(what.operation, batch->pieces.size()));
  // What has failed is not done, and found out again by who reads the page.
  static_cast<void>(core.devices.compute(device, what, batch->pieces, batch->results.get(), batch->done.get()));
}

// By an operator.
struct AppliedWork : Work {
  std::array<hl_piece, HL_COMPUTE_MAX> asked;
};

void gather_applied(Core& core, std::span<const hl_piece> pieces, AppliedWork* work) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(pieces[i].address);
    if (address % kPageSize + pieces[i].bytes > kPageSize || !core.window.holds(address)) continue;
    auto far = borrow_far(core, core.window.index_of(address),
                          [&](std::uint32_t device) { return core.devices.has_operators(device); });
    if (far) work->add(*far, address, pieces[i].bytes, pieces[i].word, i);
  }
}

void apply_batch(Core& core, std::uint32_t device, const far::OperatorName& name, const std::byte* argument,
                 Batch* batch) {
  batch->make_room(name.result_bytes * batch->pieces.size());
  // What has failed is not done, as above.
  static_cast<void>(
      core.devices.apply(device, name, argument, batch->pieces, batch->results.get(), batch->done.get()));
}

void hand_out_counts(const Batch& batch, std::uint32_t* counts) {
  for (std::size_t digit = 0; digit < elements::spread_digits; ++digit) {
    std::uint32_t more;
    std::memcpy(&more, batch.results.get() + digit * sizeof more, sizeof more);
    counts[digit] += more;
  }
}

// To where the caller wants it, which may be far.
void hand_out(const Batch& batch, std::size_t size, void* results, unsigned char* done) {
  std::uint64_t pages = 0;
  for (std::size_t i = 0; i < batch.which.size(); ++i) {
    if (!batch.done[i]) continue;
    done[batch.which[i]] = 1;
    ++pages;
    std::memcpy(static_cast<std::byte*>(results) + batch.which[i] * size, batch.results.get() + i * size, size);
  }
  hinterland::count(Counter::pages_offloaded, pages);
}

}  // namespace

int Pager::compute(const hl_computation& what, std::uintptr_t address, std::size_t count, const std::size_t* indices,
                   void* results, unsigned char* done) {
  const Wanted wanted{what, address, count, indices, elements::element_bytes(what.element)};
  if (wanted.size == 0 || !wanted.has_sense()) return EINVAL;
  Core& core = impl_->core;
  if (!impl_->hears_hints()) return 0;
  std::unique_ptr<Work> work;
  {
    Undisturbed undisturbed;
    work = std::make_unique<Work>();
    {
      MapGuard guard(*impl_);  // a child must find no page busy in our hands
      gather(core, wanted, work.get());
    }
    for (std::uint32_t device = 0; device < work->batches.size(); ++device)
      if (!work->batches[device].pieces.empty()) compute_batch(core, device, what, &work->batches[device]);
    core.devices.give_back(work->borrowed);
  }
  const bool together = what.operation == elements::spread;
  for (const Batch& batch : work->batches) {
    if (!batch) continue;
    hand_out(batch, together ? 0 : elements::result_bytes(what.operation, 1), results, done);
    if (together) hand_out_counts(batch, static_cast<std::uint32_t*>(results));
  }
  Undisturbed undisturbed;
  work.reset();
  return 0;
}

int Pager::apply(const hl_operator& which, const void* argument, std::span<const hl_piece> pieces, void* results,
                 unsigned char* done) {
  const auto name = far::OperatorName::of(which);
  if (!name || pieces.size() > HL_COMPUTE_MAX) return EINVAL;
  for (const hl_piece& piece : pieces)
    if (piece.bytes == 0 || piece.bytes > kPageSize || piece.bytes % name->element_bytes != 0) return EINVAL;
  Core& core = impl_->core;
  if (!impl_->hears_hints() || !core.devices.have_operators()) return 0;
  // What the caller has may be far: it is copied outside of the runtime, where a fault is an ordinary one.
  alignas(16) std::array<std::byte, HL_OPERATOR_ARGUMENT_MAX> told;
  std::copy_n(static_cast<const std::byte*>(argument), name->argument_bytes, told.begin());
  std::unique_ptr<AppliedWork> work;
  {
    Undisturbed undisturbed;
    work = std::make_unique<AppliedWork>();
  }
  std::ranges::copy(pieces, work->asked.begin());
  {
    Undisturbed undisturbed;
    {
      MapGuard guard(*impl_);  // as above
      gather_applied(core, std::span(work->asked).first(pieces.size()), work.get());
    }
    for (std::uint32_t device = 0; device < work->batches.size(); ++device)
      if (Batch& batch = work->batches[device]) apply_batch(core, device, *name, told.data(), &batch);
    core.devices.give_back(work->borrowed);
  }
  for (const Batch& batch : work->batches)
    if (batch) hand_out(batch, name->result_bytes, results, done);
  Undisturbed undisturbed;
  work.reset();
  return 0;
}

}  // namespace hinterland
