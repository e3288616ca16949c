// mremap in the window: shrink, grow in place, or move the pages with their words to another range.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

#include "paging/pager_impl.hpp"
#include "paging/reservation.hpp"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace hinterland {

std::intptr_t Pager::remap(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                           std::uintptr_t new_address) {
  old_length = page_ceil(old_length);
  new_length = page_ceil(new_length);
  bool fixed = (flags & MREMAP_FIXED) != 0, keep_old = (flags & MREMAP_DONTUNMAP) != 0;
  if ((flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0) return -EINVAL;
  if (new_length == 0 || old_length == 0 || (address & (kPageSize - 1)) != 0) return -EINVAL;
  if ((fixed || keep_old) && (flags & MREMAP_MAYMOVE) == 0) return -EINVAL;
  if (keep_old && old_length != new_length) return -EINVAL;
  if (fixed && (new_address & (kPageSize - 1)) != 0) return -EINVAL;
  if (fixed && new_address < address + old_length && address < new_address + new_length) return -EINVAL;

  Impl& parts = *impl_;
  std::size_t surplus = old_length > new_length ? old_length - new_length : 0;
  {
    LockGuard guard(parts.map_mutex);
    const Region* region = parts.regions.find(address);
    if (region == nullptr) return -EFAULT;
    // Shrinking in place only unmaps the rest: there may be holes, and mappings of other kinds.
    bool shrinks = !fixed && !keep_old && new_length <= old_length;
    if (shrinks && !parts.core.window.contains(address, old_length)) return -EFAULT;
    if (!shrinks && address + std::min(old_length, new_length) > region->end) return -EFAULT;
    if (!shrinks && region->surrendered)
      return parts.move_foreign(address, old_length, new_length, flags, fixed ? new_address : 0);
    Region old = *region;
    old.start = address;
    old.end = address + std::min(old_length, new_length);
    if (!fixed && !keep_old) {
      std::size_t more = new_length > old_length ? new_length - old_length : 0;
      if (more == 0 || (address + old_length == region->end && parts.can_grow(address + old_length, more))) {
        if (more > 0)
          if (std::intptr_t grown = parts.place(address + old_length, more, old.protection, old.flags); grown < 0)
            return grown;
        new_address = address;
      } else if ((flags & MREMAP_MAYMOVE) == 0) {
        return -ENOMEM;
      } else {
        std::intptr_t moved = parts.move_mapping(old, new_length, flags, 0);
        if (moved < 0) return moved;
        new_address = static_cast<std::uintptr_t>(moved);
      }
    } else {
      std::intptr_t moved = parts.move_mapping(old, new_length, flags, fixed ? new_address : 0);
      if (moved < 0) return moved;
      new_address = static_cast<std::uintptr_t>(moved);
    }
  }
  if (surplus > 0) unmap(address + new_length, surplus);
  if (new_length > old_length &&
      !parts.core.marks.is_dumped(parts.core.window.index_of(new_address + old_length - 1)))
    advise(new_address + old_length, new_length - old_length, MADV_DONTDUMP);
  return static_cast<std::intptr_t>(new_address);
}

bool Pager::Impl::can_grow(std::uintptr_t end, std::size_t more) const {
  return core.window.contains(end, more) && core.window.is_free(end, more);
}

// A file or shared mapping that lies in the window: the kernel resizes and moves it, and we keep the books.
std::intptr_t Pager::Impl::move_foreign(std::uintptr_t address, std::size_t old_length, std::size_t new_length,
                                        int flags, std::uintptr_t new_address) {
  bool keep_old = (flags & MREMAP_DONTUNMAP) != 0;
  std::size_t more = new_length > old_length ? new_length - old_length : 0;
  if (new_address == 0 && !keep_old && can_grow(address + old_length, more)) {
    // It grows only into addresses without any mapping, and there is our reservation.
    syscall(SYS_munmap, address + old_length, more);
    long grown = syscall(SYS_mremap, address, old_length, new_length, 0);
    int error = grown < 0 ? -errno : 0;
    if (error != 0) {
      reserve_again(address + old_length, more);
      return error;
    }
    core.window.occupy(address + old_length, more);
    regions.put({address, address + new_length, PROT_NONE, 0, true});
    return static_cast<std::intptr_t>(address);
  }
  if ((flags & MREMAP_MAYMOVE) == 0) return -ENOMEM;
  std::uintptr_t target = new_address != 0 ? new_address : core.window.allocate(new_length, kPageSize);
  if (target == 0 || !core.window.contains(target, new_length)) return -ENOMEM;
  long moved = syscall(SYS_mremap, address, old_length, new_length, flags | MREMAP_FIXED, target);
  if (moved < 0) {
    int error = -errno;
    if (new_address == 0) core.window.release(target, new_length);
    return error;
  }
  forget(target, new_length);
  core.window.occupy(target, new_length);
  regions.put({target, target + new_length, PROT_NONE, 0, true});
  if (keep_old) return static_cast<std::intptr_t>(target);
  reserve_again(address, old_length);
  regions.remove(address, address + old_length);
  core.window.release(address, old_length);
  return static_cast<std::intptr_t>(target);
}

std::intptr_t Pager::Impl::move_mapping(const Region& old, std::size_t new_length, int flags,
                                        std::uintptr_t new_address) {
  bool keep_old = (flags & MREMAP_DONTUNMAP) != 0;
  if (new_address == 0) {
    new_address = core.window.allocate(new_length, kPageSize);
    if (new_address == 0) return -ENOMEM;
  } else if (!core.window.contains(new_address, new_length)) {
    return -ENOMEM;  // a fixed target outside the window: the interposer moves the bytes
  }
  std::intptr_t result = place(new_address, new_length, old.protection, old.flags);
  int error = result < 0 ? static_cast<int>(result) : move_pages(old.start, new_address, old.length());
  if (error != 0) {  // the old range is as it was
    reserve_again(new_address, new_length);
    regions.remove(new_address, new_address + new_length);
    core.window.release(new_address, new_length);
    set_gauge(Gauge::mapped_bytes, regions.mapped_bytes());
    return error;
  }
  if (!keep_old) {
    reserve_again(old.start, old.length());
    regions.remove(old.start, old.end);
    forget(old.start, old.length());
    core.window.release(old.start, old.length());
    set_gauge(Gauge::mapped_bytes, regions.mapped_bytes());
  }
  return static_cast<std::intptr_t>(new_address);
}

namespace {

// The kernel moves within one of its mappings at a time, and may see several where we see one region: a range that
// was moved before keeps its old page offset and does not merge with its neighbours. Where a border lies is found by
// halving; a piece of one page always lies in one mapping.
// 0, or -errno when nothing was moved.
int move_present(std::uintptr_t from, std::uintptr_t to, std::size_t length) {
  constexpr int kFlags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  if (syscall(SYS_mremap, from, length, length, kFlags, to) != -1) return 0;
  if (errno != EFAULT || length == kPageSize) return -errno;
  std::size_t half = page_floor(length / 2);
  if (int error = move_present(from, to, half); error != 0) return error;
  // Half is across: to stop here would tear the mapping apart.
  HL_CHECK(move_present(from + half, to + half, length - half) == 0);
  return 0;
}

}  // namespace

// Before paging began mremap does it. Afterwards it must not: the kernel may merge the moved mapping with a
// registered neighbour and then takes the registration off both, and the neighbour's far pages would read as zeros.
int Pager::Impl::move_pages(std::uintptr_t from, std::uintptr_t to, std::size_t length) {
  core.marks.copy(core.window.index_of(from), core.window.index_of(to),
                  static_cast<std::uint32_t>(length >> kPageShift));
  if (!core.managed.load()) return move_present(from, to, length);
  std::uint32_t shift = core.window.index_of(to).value - core.window.index_of(from).value;
  PageRun run;  // resident pages, locked, to be moved with one call
  auto first = core.window.index_of(from);
  core.pages.for_each_used(first, static_cast<std::uint32_t>(length >> kPageShift), [&](PageIndex page, PageCell&) {
    PageWord word = core.lock_waiting(page);
    if (word.state() == PageState::untouched) {
      core.unlock(page, word);
      return;
    }
    PageIndex target{page.value + shift};
    clear_and_lock(target);
    if (word.state() == PageState::resident) {
      if (word.has_far()) core.release_far(word.far_page());  // arrives unprotected, so it is dirty there
      if (run.count == 0 || run.end() != page) {
        move_resident(run, shift);
        run = {page, 0};
      }
      ++run.count;
      return;
    }
    if (word.state() == PageState::parked) core.frames[word.frame()].page = target;
    if (word.state() == PageState::lost) core.kernel.poison(core.address_of(target), kPageSize);  // I4 there, too
    core.unlock(target, word);
    core.unlock(page, PageWord::untouched());
  });
  move_resident(run, shift);
  return 0;
}

// Read ahead from a neighbour may have put zeros there already: they go. I1: both pages' busy bits are held until the
// bytes and the word are across.
void Pager::Impl::clear_and_lock(PageIndex target) {
  core.pages.note_used(target);
  PageWord replaced = core.lock_waiting(target);
  dispose(target, replaced);
  core.pages[target].set_locked(PageWord::untouched());
  if (replaced.state() != PageState::resident) return;
  iovec range{core.memory_of(target), kPageSize};
  core.kernel.discard({&range, 1});
}

// A run of resident pages, locked like their targets.
void Pager::Impl::move_resident(PageRun run, std::uint32_t shift) {
  for (std::uint32_t at = 0; at < run.count;) {
    PageIndex page = run.first + at, target{page.value + shift};
    std::int64_t moved = -EINVAL;
    if (core.kernel.features().move)
      moved = core.kernel.move(core.address_of(target), core.address_of(page), bytes_of_pages(run.count - at));
    if (moved == -EAGAIN) continue;
    bool there = moved > 0 || copy_page(page, target);
    std::uint32_t pages = moved > 0 ? static_cast<std::uint32_t>(moved >> kPageShift) : 1;
    for (std::uint32_t i = 0; i < pages; ++i) {
      core.policy.departed(page + i, 1);
      if (there)
        core.policy.arrived(target + i, 1, HL_ARRIVAL_FIRST_TOUCH);
      else
        core.budget.subtract(1);
      core.unlock(target + i, there ? core.pages[page + i].load().resident_dirty() : PageWord::untouched());
      core.unlock(page + i, PageWord::untouched());
    }
    at += pages;
  }
}

// Shared since a fork, not writable, or no MOVE: protect, copy, unmap. False when nothing is there.
bool Pager::Impl::copy_page(PageIndex page, PageIndex target) {
  std::uint64_t present = 0;
  if (core.kernel.present(core.address_of(page), 1, {&present, 1}) == 0 && present == 0) return false;
  if (core.kernel.features().write_protect) core.kernel.write_protect(core.address_of(page), kPageSize, true);
  for (;;) {
    std::int64_t done = core.kernel.copy(core.address_of(target), core.memory_of(page), kPageSize, false);
    alignas(kPageSize) std::array<std::byte, kPageSize> bounce;
    if (done == -EFAULT && core.kernel.read_memory(bounce.data(), core.address_of(page), kPageSize) == kPageSize)
      done = core.kernel.copy(core.address_of(target), bounce.data(), kPageSize, false);
    if (done == static_cast<std::int64_t>(kPageSize) || done == -EEXIST) break;
    HL_CHECK_OP(done, !=, -ENOENT);  // the target was just mapped and registered
    timespec nap{0, 1'000'000};      // the kernel is out of memory: the bytes are nowhere else, so wait
    nanosleep(&nap, nullptr);
  }
  iovec range{core.memory_of(page), kPageSize};
  core.kernel.discard({&range, 1});
  return true;
}

}  // namespace hinterland
