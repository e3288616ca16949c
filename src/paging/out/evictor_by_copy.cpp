// Pages that MOVE does not take as they are: of mappings that are not writable, executable ones, kernels without
// MOVE.
#include <sys/mman.h>

#include <cerrno>

#include "paging/out/evictor.hpp"
#include "paging/out/writable_moment.hpp"

namespace hinterland {

// A page of a mapping that MOVE refuses, because it may not be written or is executable. What the kernel was given
// while the page could be written (a buffer that is registered, a request under way) it still writes to: only MOVE
// sees that, and a copy would lose it. So the mapping may be written for the moment, while the page itself is
// protected, and mprotect is kept out: who writes to it waits for the busy bit, and then is told that he may not.
// What move() says; -EINVAL: it cannot be tried.
std::int64_t Evictor::move_unwritable(const Victim& victim, std::uint32_t frame) {
  std::uintptr_t address = core_.address_of(victim.page), target = core_.frames.address_of(frame);
  const int protection = core_.take_by_move ? core_.kernel.protection_of_mapping(address) : -EINVAL;
  if (protection < 0) return -EINVAL;
  WritableMoment moment(core_.memory_of(victim.page), reinterpret_cast<void*>(target), protection);
  if (!moment) return -EINVAL;
  std::int64_t moved = core_.kernel.move(target, address, kPageSize);
  if (moved == -EBUSY) {  // perhaps only shared since a fork
    core_.kernel.make_exclusive_for_reading(address);
    moved = core_.kernel.move(target, address, kPageSize);
  }
  return moved;
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
  std::int64_t done = can_protect ? move_unwritable(victim, frame) : -EINVAL;
  if (done == static_cast<std::int64_t>(kPageSize)) return true;
  if (done == -EBUSY) {  // pinned
    if (victim.word.dirty()) core_.kernel.write_protect(address, kPageSize, false);
    return false;
  }
  done = core_.kernel.copy(core_.frames.address_of(frame), core_.memory_of(victim.page), kPageSize, false);
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
