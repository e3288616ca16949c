// What a program says about its mappings: madvise, mlock, mincore, msync on ranges of the window.
//
// As the kernel does: a range is gone through from its start, a hole is passed over (and is ENOMEM at the end) or
// ends the call, the first refusal ends it.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/raw_call.hpp"
#include "paging/page/reservation.hpp"
#include "paging/pager_impl.hpp"

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24  // Linux 5.18
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102  // Linux 6.13
#define MADV_GUARD_REMOVE 103
#endif

namespace hinterland {
namespace {

struct Effect {
  int advice, added, removed;
};
constexpr Effect kEffects[] = {
    {MADV_DONTFORK, kDontFork, 0},     {MADV_DOFORK, 0, kDontFork},       {MADV_WIPEONFORK, kWipeOnFork, 0},
    {MADV_KEEPONFORK, 0, kWipeOnFork}, {MADV_DONTDUMP, kDontDump, 0},     {MADV_DODUMP, 0, kDontDump},
    {MADV_HUGEPAGE, kHuge, kNoHuge},   {MADV_NOHUGEPAGE, kNoHuge, kHuge},
};

int raw_advise(const Region& piece, int advice) {
  return raw_madvise(reinterpret_cast<void*>(piece.start), piece.length(), advice) == 0 ? 0 : -errno;
}
int raw_lock(std::uintptr_t address, std::size_t length, int flags) {
  return syscall(SYS_mlock2, address, length, flags) == 0 ? 0 : -errno;
}
int raw_unlock(std::uintptr_t address, std::size_t length) {
  return raw::checked(SYS_munlock, address, length) == 0 ? 0 : -errno;
}

}  // namespace

int Pager::advise(std::uintptr_t address, std::size_t length, int advice) {
  length = page_ceil(length);
  MapGuard guard(*impl_);
  if (advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE) return impl_->populate(address, length, advice);
  std::size_t covered = 0;
  for (const Region& piece : impl_->pieces(address, length)) {
    if (int error = impl_->advise_piece(piece, advice); error != 0) return error;
    covered += piece.length();
  }
  return covered == length ? 0 : -ENOMEM;
}

int Pager::Impl::advise_piece(const Region& piece, int advice) {
  if (!piece.surrendered) {
    const bool managed = core.managed.load(), locked = (piece.attributes & kLocked) != 0;
    switch (advice) {
      case MADV_DONTNEED:
      case MADV_FREE:
        if (locked) return -EINVAL;
        [[fallthrough]];
      case MADV_DONTNEED_LOCKED:
        if (!managed) break;
        if (locked) raw_unlock(piece.start, piece.length());  // for as long as it takes: else nothing can be dropped
        drop(piece.start, piece.length());
        return locked ? raw_lock(piece.start, piece.length(), MLOCK_ONFAULT) : 0;
      case MADV_WILLNEED:  // wishes; the budget decides
        if (managed) return 0;
        break;
      // How files are read ahead. Of ordinary memory it says nothing, and WritableMoment needs the mark.
      case MADV_NORMAL:
      case MADV_RANDOM:
      case MADV_SEQUENTIAL:
        if (managed) return 0;
        break;
      case MADV_COLD:
      case MADV_PAGEOUT:
        if (managed) return locked ? -EINVAL : 0;
        break;
      // Once paging has begun, all of the window is kept out of the kernel's core files (Kernel::register_range): it
      // would write zeros for far pages. What the program wants is noted for `hinterland core`.
      case MADV_DONTDUMP:
      case MADV_DODUMP:
        note_dumped(piece.start, piece.length(), advice == MADV_DODUMP);
        if (managed) return 0;
        break;
      case MADV_DONTFORK:  // to the kernel all of the window is, by then (keep_from_copies)
      case MADV_DOFORK:
        if (!managed) break;
        regions.mark(piece.start, piece.end, advice == MADV_DONTFORK ? kDontFork : 0, kDontFork);
        return 0;
      case MADV_MERGEABLE:  // a wish that is not passed on (kernel/same_page_merging.hpp); a kernel without refuses
                            // it
      case MADV_UNMERGEABLE:
        return raw_madvise(reinterpret_cast<void*>(piece.start), 0, advice) == 0 ? 0 : -errno;
      case MADV_GUARD_INSTALL:  // read-ahead would undo it; as kernels that do not have it
      case MADV_GUARD_REMOVE:
        return -EINVAL;
      default:
        break;
    }
  }
  if (int error = raw_advise(piece, advice); error != 0) return error;
  for (const Effect& effect : kEffects)
    if (effect.advice == advice) regions.mark(piece.start, piece.end, effect.added, effect.removed);
  return 0;
}

// Brings nothing in once paging has begun, because the budget decides; but a protection that forbids it is refused.
int Pager::Impl::populate(std::uintptr_t address, std::size_t length, int advice) {
  const int needed = advice == MADV_POPULATE_READ ? PROT_READ : PROT_WRITE;
  std::uintptr_t reached = address;
  for (const Region& piece : pieces(address, length)) {
    if (piece.start != reached) return -ENOMEM;
    reached = piece.end;
    if (piece.surrendered || !core.managed.load()) {
      if (int error = raw_advise(piece, advice); error != 0) return error;
    } else if ((piece.protection & needed) == 0) {
      return -EINVAL;
    }
  }
  return reached == address + length ? 0 : -ENOMEM;
}

void Pager::Impl::note_dumped(std::uintptr_t address, std::size_t length, bool dumped) {
  regions.mark(address, address + length, dumped ? 0 : kDontDump, dumped ? kDontDump : 0);
  core.marks.set_dumped(core.window.index_of(address), static_cast<std::uint32_t>(length >> kPageShift), dumped);
}

void Pager::Impl::tell_kernel(const Region& region) {
  for (const Effect& effect : kEffects)
    if ((region.attributes & effect.added) != 0) raw_advise(region, effect.advice);
}

void Pager::Impl::apply(const Region& region) {
  if ((region.attributes & kDontDump) != 0)
    core.marks.set_dumped(core.window.index_of(region.start),
                          static_cast<std::uint32_t>(region.length() >> kPageShift), false);
  tell_kernel(region);
  if ((region.attributes & kLocked) == 0) return;
  set_locked(region.start, region.length(), region.attributes & (kLocked | kLockedOnFault));
  if (raw_lock(region.start, region.length(), MLOCK_ONFAULT) != 0 || (region.attributes & kLockedOnFault) != 0)
    return;
  bring_for_kernel(region.start, region.length());
  raw_lock(region.start, region.length(), 0);  // brings it in; where that fails the mapping stands, as with mmap
}

// Signal mode, where the kernel cannot wait for faults. The pages are marked to stay already.
void Pager::Impl::bring_for_kernel(std::uintptr_t address, std::size_t length) {
  if (!core.faults_by_signal || !core.managed.load()) return;
  regions.for_each(address, address + length, [&](const Region& piece) {
    if (piece.surrendered || piece.protection == PROT_NONE) return;
    bring(piece.start, piece.length(), (piece.protection & PROT_WRITE) != 0);
  });
}

// The books only. Pages that leave the lock are in the policy's lists already, or come back with their next arrival.
void Pager::Impl::set_locked(std::uintptr_t address, std::size_t length, int attributes) {
  regions.mark(address, address + length, attributes, (kLocked | kLockedOnFault) & ~attributes);
  core.pinned.set(core.window.index_of(address), static_cast<std::uint32_t>(length >> kPageShift),
                  (attributes & kLocked) != 0);
}

int Pager::lock(std::uintptr_t address, std::size_t length, int flags) {
  MapGuard guard(*impl_);
  std::size_t covered = impl_->covered_prefix(address, length);
  if (covered == 0) return -ENOMEM;
  // First without bringing anything in: a refusal then is about limits.
  if (int error = raw_lock(address, covered, MLOCK_ONFAULT); error != 0) return error;
  impl_->set_locked(address, covered, (flags & MLOCK_ONFAULT) != 0 ? kLocked | kLockedOnFault : kLocked);
  if (covered != length) return -ENOMEM;
  if ((flags & MLOCK_ONFAULT) != 0) return 0;
  impl_->bring_for_kernel(address, length);
  return raw_lock(address, length, 0);
}

int Pager::unlock(std::uintptr_t address, std::size_t length) {
  MapGuard guard(*impl_);
  std::size_t covered = impl_->covered_prefix(address, length);
  if (covered == 0) return -ENOMEM;
  if (int error = raw_unlock(address, covered); error != 0) return error;
  impl_->set_locked(address, covered, 0);
  return covered == length ? 0 : -ENOMEM;
}

int Pager::lock_all(int flags) {
  MapGuard guard(*impl_);
  if (syscall(SYS_mlockall, flags | MCL_ONFAULT) != 0) return -errno;
  const int attributes = kLocked | kLockedOnFault;
  if ((flags & MCL_CURRENT) != 0) {
    for (const Region& region : impl_->pieces(0, UINTPTR_MAX))
      impl_->set_locked(region.start, region.length(), attributes);
    // Frames are for pages that leave. The kernel moves none from memory that is not locked to memory that is: what
    // the program maps or unlocks later would be copied.
    const auto& frames = impl_->core.frames;
    if (frames.capacity() != 0) raw_unlock(frames.address_of(0), bytes_of_pages(frames.capacity()));
  }
  impl_->attributes_of_new = (flags & MCL_FUTURE) != 0 ? attributes : 0;
  return 0;
}

int Pager::unlock_all() {
  MapGuard guard(*impl_);
  if (syscall(SYS_munlockall) != 0) return -errno;
  for (const Region& region : impl_->pieces(0, UINTPTR_MAX)) impl_->set_locked(region.start, region.length(), 0);
  impl_->attributes_of_new = 0;
  return 0;
}

int Pager::core(std::uintptr_t address, std::size_t length, unsigned char* vector) {
  length = page_ceil(length);
  MapGuard guard(*impl_);
  std::size_t covered = impl_->covered_prefix(address, length);
  if (covered != 0 && raw::checked(SYS_mincore, address, covered, vector) != 0) return -errno;
  if (covered != length) return -ENOMEM;
  if (!impl_->core.managed.load()) return 0;
  for (std::size_t i = 0; i < length >> kPageShift; ++i) {
    PageState state =
        impl_->core.pages[impl_->core.window.index_of(address) + static_cast<std::uint32_t>(i)].load().state();
    if (state != PageState::untouched && state != PageState::lost) vector[i] = 1;
  }
  return 0;
}

int Pager::sync(std::uintptr_t address, std::size_t length, int flags) {
  length = page_ceil(length);
  MapGuard guard(*impl_);
  std::size_t covered = 0;
  for (const Region& piece : impl_->pieces(address, length)) {
    if (raw::checked(SYS_msync, piece.start, piece.length(), flags) != 0) return -errno;
    covered += piece.length();
  }
  return covered == length ? 0 : -ENOMEM;
}

}  // namespace hinterland
