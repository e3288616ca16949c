// Pages that MOVE does not take as they are: of mappings that are not writable, executable ones, kernels without
// MOVE.
#include <algorithm>
#include <cerrno>

#include "paging/out/evictor.hpp"
#include "paging/out/writable_moment.hpp"

namespace hinterland {

// The first pages of a run, in a mapping that MOVE refuses because it may not be written or is executable. What the
// kernel was given while they could be written (a buffer that is registered, a request under way) it still writes to:
// only MOVE sees that, and a copy would lose it. So the mapping may be written for the moment, while the pages
// themselves are protected, and mprotect is kept out: who writes to them waits for the busy bit, and then is told
// that he may not. What move() says; -EINVAL: it cannot be tried. Those that stay can be written as before.
std::int64_t Evictor::take_unwritable_run(Victims run, std::uint32_t frame) {
  const std::uintptr_t address = core_.address_of(run[0].page), target = core_.frames.address_of(frame);
  LockGuard guard(core_.protection_mutex);
  const MappingAt mapping = core_.kernel.mapping_at(address);
  if (mapping.protection < 0) return -EINVAL;
  const std::size_t bytes = std::min(bytes_of_pages(run.size()), mapping.end - address);
  std::int64_t moved = -EINVAL;
  {
    WritableMoment moment(core_.memory_of(run[0].page), reinterpret_cast<void*>(target), bytes, mapping.protection);
    if (!moment.possible() || core_.kernel.write_protect(address, bytes, true) != 0) return -EINVAL;
    if (moment.open()) moved = move_shared_ones_too(target, address, bytes);
  }
  // Not before the moment is over: until then this protection is all that keeps the program from writing there.
  run = run.first(bytes >> kPageShift);
  for (const Victim& stays : run.subspan(moved > 0 ? static_cast<std::size_t>(moved) >> kPageShift : 0))
    if (stays.word.dirty()) core_.kernel.write_protect(core_.address_of(stays.page), kPageSize, false);
  return moved;
}

// As Kernel::move(). Pages that are refused may only be shared since a fork.
std::int64_t Evictor::move_shared_ones_too(std::uintptr_t target, std::uintptr_t source, std::size_t bytes) {
  std::size_t done = 0;
  for (bool was_busy = false; done < bytes;) {
    const std::int64_t moved = core_.kernel.move(target + done, source + done, bytes - done);
    if (moved == -EBUSY && !was_busy) {
      core_.kernel.make_exclusive_for_reading(source + done);
      was_busy = true;
      continue;
    }
    if (moved <= 0) return done > 0 ? static_cast<std::int64_t>(done) : moved;
    done += static_cast<std::size_t>(moved);
    was_busy = false;
  }
  return static_cast<std::int64_t>(done);
}

// Protect, copy, unmap. I2: from the protection on no write lands; the fault it causes waits for the busy bit.
bool Evictor::take_by_copy(Victim& victim, std::uint32_t frame) {
  std::uintptr_t address = core_.address_of(victim.page);
  LockGuard guard(core_.protection_mutex);  // and nobody makes it writable with mprotect meanwhile
  // MOVE refuses pages of mappings that are not writable, and of those that are executable or locked. The latter can
  // be written while they are copied, so without write protection they stay.
  bool can_protect = core_.kernel.features().write_protect;
  if (!can_protect && core_.kernel.make_exclusive(address) == 0) return false;
  if (can_protect && core_.kernel.write_protect(address, kPageSize, true) != 0) return false;
  std::int64_t done =
      core_.kernel.copy(core_.frames.address_of(frame), core_.memory_of(victim.page), kPageSize, false);
  if (done == -EFAULT && core_.kernel.read_memory(bounce_.data(), address, kPageSize) == kPageSize)  // PROT_NONE
    done = core_.kernel.copy(core_.frames.address_of(frame), bounce_.data(), kPageSize, false);
  if (done != static_cast<std::int64_t>(kPageSize)) {
    if (can_protect && victim.word.dirty()) core_.kernel.write_protect(address, kPageSize, false);
    return false;
  }
  iovec range{reinterpret_cast<void*>(address), kPageSize};
  if (core_.kernel.discard({&range, 1}) == 0) return true;
  // Locked into memory meanwhile, or by a raw system call. The frame's copy goes.
  range.iov_base = reinterpret_cast<void*>(core_.frames.address_of(frame));
  core_.kernel.discard({&range, 1});
  if (can_protect && victim.word.dirty()) core_.kernel.write_protect(address, kPageSize, false);
  return false;
}

}  // namespace hinterland
