// mremap of far mappings: shrink, grow in place, or move the pages with their words to another range.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/raw_call.hpp"
#include "paging/page/reservation.hpp"
#include "paging/pager_impl.hpp"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace hinterland {

namespace {

constexpr std::uintptr_t kTaskEnd = (std::uintptr_t{1} << 47) - kPageSize;  // end of user addresses

// What the kernel refuses before it looks at the mappings. Lengths are whole pages.
int check_arguments(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                    std::uintptr_t new_address) {
  const bool fixed = (flags & MREMAP_FIXED) != 0, keep_old = (flags & MREMAP_DONTUNMAP) != 0;
  if ((flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0) return -EINVAL;
  if (new_length == 0 || page_floor(address) != address) return -EINVAL;
  if ((fixed || keep_old) && (flags & MREMAP_MAYMOVE) == 0) return -EINVAL;
  if (keep_old && old_length != new_length) return -EINVAL;
  if (!fixed) return 0;
  if (new_length > kTaskEnd || new_address > kTaskEnd - new_length) return -EINVAL;
  const bool overlap = new_address < address + old_length && address < new_address + new_length;
  return page_floor(new_address) != new_address || overlap ? -EINVAL : 0;
}

}  // namespace

std::intptr_t Pager::remap(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                           std::uintptr_t new_address) {
  old_length = page_ceil(old_length);
  new_length = page_ceil(new_length);
  if (int error = check_arguments(address, old_length, new_length, flags, new_address); error != 0) return error;
  const bool fixed = (flags & MREMAP_FIXED) != 0, keep_old = (flags & MREMAP_DONTUNMAP) != 0;
  Impl& parts = *impl_;
  MapGuard guard(parts);
  if (new_length > bytes_) return new_length > kTaskEnd ? -EINVAL : -ENOMEM;
  const bool stays_ours =
      parts.core.window.contains(new_address, new_length) || parts.core.window.allows(new_address, new_length);
  if (fixed && !stays_ours) return -ENOMEM;
  // Only the window keeps books of what is not ours: move_out() takes it to where it is the kernel's alone.
  bool some_foreign = false;
  parts.regions.for_each(address, address + std::max(old_length, kPageSize),  // length 0 is a copy of a shared one
                         [&](const Region& piece) { some_foreign |= piece.surrendered; });
  if (fixed && some_foreign && !parts.is_inside(new_address)) return -ENOMEM;
  const Region* region = parts.regions.find(address);
  if (region == nullptr) return -EFAULT;
  if (old_length > bytes_) return -EINVAL;
  if (fixed && old_length == new_length) return parts.move_pieces(address, old_length, flags, new_address);
  if (!fixed && !keep_old && new_length <= old_length) {
    // Shrinking in place only unmaps the rest: there may be holes, and mappings of other kinds.
    if (parts.core.window.end_of_piece(address, address + old_length) != address + old_length) return -EFAULT;
    if (new_length < old_length)
      if (int error = parts.unmap(address + new_length, old_length - new_length); error != 0) return error;
    return static_cast<std::intptr_t>(address);
  }
  if (old_length == 0 && !region->surrendered) return -EINVAL;  // only shared mappings can be doubled
  if (address + std::min(old_length, new_length) > region->end) return -EFAULT;
  if (region->surrendered) return parts.move_foreign(address, old_length, new_length, flags, fixed ? new_address : 0);
  return parts.resize(*region, address, old_length, new_length, flags, fixed ? new_address : 0);
}

// One far mapping, which grows, or moves, or both. new_address 0: wherever there is room.
std::intptr_t Pager::Impl::resize(const Region& region, std::uintptr_t address, std::size_t old_length,
                                  std::size_t new_length, int flags, std::uintptr_t new_address) {
  Region old = region;
  old.start = address;
  old.end = address + std::min(old_length, new_length);
  const bool in_place = new_address == 0 && (flags & MREMAP_DONTUNMAP) == 0 && new_length > old_length &&
                        address + old_length == region.end &&
                        can_grow(address + old_length, new_length - old_length) &&
                        reserve_behind(address + old_length, new_length - old_length);
  if (in_place) {
    std::intptr_t grown =
        place(address + old_length, new_length - old_length, old.protection, old.flags, old.attributes);
    if (grown < 0 && !is_inside(address))
      raw_munmap(reinterpret_cast<void*>(address + old_length), new_length - old_length);
    return grown < 0 ? grown : static_cast<std::intptr_t>(address);
  }
  if ((flags & MREMAP_MAYMOVE) == 0) return -ENOMEM;
  std::intptr_t moved = move_mapping(old, new_length, flags, new_address);
  if (moved >= 0 && new_length < old_length)
    if (int error = unmap(address + new_length, old_length - new_length); error != 0) return error;
  return moved;
}

// Everything that is mapped in a range, of whatever kind, to a place of the same size; holes stay holes in the source
// and leave what is there in the target. (Linux 6.17. Before, the kernel moves one mapping at a time.)
std::intptr_t Pager::Impl::move_pieces(std::uintptr_t address, std::size_t length, int flags,
                                       std::uintptr_t new_address) {
  const std::vector<Region> all = pieces(address, length);  // a copy: moving looks for pieces itself
  for (const Region& piece : all) {
    std::uintptr_t target = new_address + (piece.start - address);
    std::intptr_t moved = piece.surrendered
                              ? move_foreign_to(piece.start, piece.length(), piece.length(), flags, target)
                              : move_mapping(piece, piece.length(), flags, target);
    if (moved < 0) return moved;
  }
  return static_cast<std::intptr_t>(new_address);
}

bool Pager::Impl::can_grow(std::uintptr_t end, std::size_t more) const {
  if (!is_inside(end - 1)) return core.window.allows(end, more);  // the kernel says what is free: reserve_behind()
  return core.window.contains(end, more) && core.window.is_free(end, more);
}

// Outside of the window a mapping grows where nobody has the addresses.
bool Pager::Impl::reserve_behind(std::uintptr_t end, std::size_t more) {
  if (is_inside(end - 1)) return true;
  constexpr int kOnlyHere = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  return raw_mmap(reinterpret_cast<void*>(end), more, PROT_NONE, kOnlyHere) != MAP_FAILED;
}

// A file or shared mapping that lies in the window: the kernel resizes and moves it, and we keep the books.
// new_address 0: wherever there is room.
std::intptr_t Pager::Impl::move_foreign(std::uintptr_t address, std::size_t old_length, std::size_t new_length,
                                        int flags, std::uintptr_t new_address) {
  const int attributes = regions.find(address)->attributes;
  std::size_t more = new_length > old_length ? new_length - old_length : 0;
  if (new_address == 0 && (flags & MREMAP_DONTUNMAP) == 0 && old_length != 0 &&
      can_grow(address + old_length, more)) {
    // It grows only into addresses without any mapping, and there is our reservation.
    raw::checked(SYS_munmap, address + old_length, more);
    long grown = raw::checked(SYS_mremap, address, old_length, new_length, 0);
    int error = grown < 0 ? -errno : 0;
    if (error != 0) {
      reserve_again(address + old_length, more);
      return error;
    }
    core.window.occupy(address + old_length, more);
    regions.put({address, address + new_length, PROT_NONE, 0, true, attributes});
    return static_cast<std::intptr_t>(address);
  }
  if ((flags & MREMAP_MAYMOVE) == 0) return -ENOMEM;
  if (new_address != 0) return move_foreign_to(address, old_length, new_length, flags, new_address);
  std::uintptr_t target = core.window.allocate(new_length, kPageSize);
  if (target == 0) return -ENOMEM;
  std::intptr_t moved = move_foreign_to(address, old_length, new_length, flags | MREMAP_FIXED, target);
  if (moved < 0) core.window.release(target, new_length);
  return moved;
}

std::intptr_t Pager::Impl::move_foreign_to(std::uintptr_t address, std::size_t old_length, std::size_t new_length,
                                           int flags, std::uintptr_t target) {
  const int attributes = regions.find(address)->attributes;
  long moved;
  {
    LockGuard no_taking(core.protection_mutex);  // of what the target replaces
    moved = raw::checked(SYS_mremap, address, old_length, new_length, flags, target);
  }
  if (moved < 0) {
    int error = -errno;
    reclaim_hole(target, new_length);
    return error;
  }
  forget(target, new_length);
  core.window.occupy(target, new_length);
  regions.put({target, target + new_length, PROT_NONE, 0, true, attributes});
  if ((flags & MREMAP_DONTUNMAP) != 0) {
    set_locked(address, old_length, 0);
  } else if (old_length != 0 && !reclaim_hole(address, old_length)) {
    // Another thread's mapping came to lie in the hole meanwhile: it stays, until the program unmaps it.
    forget(address, old_length);
    regions.put({address, address + old_length, PROT_NONE, 0, true});
  }
  return static_cast<std::intptr_t>(target);
}

// Addresses that the kernel has cleared, or may have cleared before it refused, become a reservation again. False
// when there is something.
bool Pager::Impl::reclaim_hole(std::uintptr_t address, std::size_t length) {
  constexpr int kOnlyHere = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  if (raw_mmap(reinterpret_cast<void*>(address), length, PROT_NONE, kOnlyHere) == MAP_FAILED) return false;
  alike_reserved(address, length);
  regions.remove(address, address + length);
  forget(address, length);
  core.window.release(address, length);
  return true;
}

std::intptr_t Pager::Impl::move_mapping(const Region& old, std::size_t new_length, int flags,
                                        std::uintptr_t new_address) {
  bool keep_old = (flags & MREMAP_DONTUNMAP) != 0;
  if (new_address == 0) {
    new_address = core.window.allocate(new_length, kPageSize);
    if (new_address == 0) return -ENOMEM;
  }
  // Locked pages can be neither moved nor unmapped by themselves.
  if ((old.attributes & kLocked) != 0) raw::checked(SYS_munlock, old.start, old.length());
  std::intptr_t result = place(new_address, new_length, old.protection, old.flags);
  int error = result < 0 ? static_cast<int>(result) : move_pages(old.start, new_address, old.length());
  if (error != 0) {  // the old range is as it was
    unmap(new_address, new_length);
    apply(old);
    return error;
  }
  if (keep_old) {
    set_locked(old.start, old.length(), 0);
  } else if (error = unmap(old.start, old.length()); error != 0) {
    return error;
  }
  // Only now: locking brings in what is not there, and would have met pages still on their way.
  if (old.attributes != 0) {
    regions.mark(new_address, new_address + new_length, old.attributes, 0);
    apply({new_address, new_address + new_length, old.protection, old.flags, false, old.attributes});
  }
  return static_cast<std::intptr_t>(new_address);
}

std::intptr_t Pager::move_out(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                              std::uintptr_t new_address, void (*came)(std::uintptr_t, std::size_t)) {
  old_length = page_ceil(old_length);
  new_length = page_ceil(new_length);
  if (int error = check_arguments(address, old_length, new_length, flags, new_address); error != 0) return error;
  Impl& parts = *impl_;
  MapGuard guard(parts);
  const Region* region = parts.regions.find(address);
  if (region == nullptr) return -EFAULT;
  if (old_length > bytes_) return -EINVAL;
  const bool moves_only = old_length == new_length;
  if (!moves_only) {
    if (old_length == 0 && !region->surrendered) return -EINVAL;
    if (address + std::min(old_length, new_length) > region->end) return -EFAULT;
  }
  std::vector<Region> all = parts.pieces(address, moves_only ? old_length : std::min(old_length, new_length));
  if (old_length == 0) all = {*region};
  for (const Region& piece : all) {
    std::uintptr_t target = new_address + (moves_only ? piece.start - address : 0);
    std::size_t length = moves_only ? piece.length() : new_length;
    std::intptr_t moved;
    if (piece.surrendered && old_length == 0)
      moved = parts.move_foreign_out(address, 0, length, flags, target);
    else if (piece.surrendered)
      moved = parts.move_foreign_out(piece.start, piece.length(), length, flags, target);
    else
      moved = parts.move_piece_out(piece, length, flags, target);
    if (moved < 0) return moved;
    if (!piece.surrendered) came(target, length);
  }
  if (new_length < old_length)
    if (int error = parts.unmap(address + new_length, old_length - new_length); error != 0) return error;
  return static_cast<std::intptr_t>(new_address);
}

int Pager::Impl::make_way(std::uintptr_t address, std::size_t length) {
  const std::vector<Region> replaced = pieces(address, length);
  for (const Region& piece : replaced)
    if (int error = surrender(piece.start, piece.length()); error != 0) return error;
  return 0;
}

// A mapping of another kind comes to its new size first, where the kernel puts it: that may be refused, and then
// nothing has changed.
std::intptr_t Pager::Impl::move_foreign_out(std::uintptr_t address, std::size_t old_length, std::size_t new_length,
                                            int flags, std::uintptr_t target) {
  std::uintptr_t from = address;
  if (old_length != new_length) {
    const long resized = raw::checked(SYS_mremap, address, old_length, new_length, MREMAP_MAYMOVE);
    if (resized == -1) return -errno;
    from = static_cast<std::uintptr_t>(resized);
  }
  if (int error = make_way(target, new_length); error != 0) return error;
  if (raw::checked(SYS_mremap, from, new_length, new_length, flags, target) == -1) return -errno;
  return old_length != 0 && (flags & MREMAP_DONTUNMAP) == 0 ? unmap(address, old_length) : 0;
}

// The bytes are copied, and the old mapping goes, or is emptied.
std::intptr_t Pager::Impl::move_piece_out(const Region& piece, std::size_t new_length, int flags,
                                          std::uintptr_t target) {
  auto* memory = reinterpret_cast<void*>(piece.start);
  if (int error = make_way(target, new_length); error != 0) return error;
  if (raw_mmap(reinterpret_cast<void*>(target), new_length, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | piece.flags) == MAP_FAILED)
    return -errno;
  if ((piece.attributes & kLocked) != 0) raw::checked(SYS_munlock, piece.start, piece.length());
  if ((piece.protection & PROT_READ) == 0) {
    LockGuard no_taking(core.protection_mutex);
    if (raw_mprotect(memory, piece.length(), PROT_READ) != 0) return -errno;
  }
  std::memcpy(reinterpret_cast<void*>(target), memory, piece.length());
  tell_kernel({target, target + new_length, piece.protection, piece.flags, false, piece.attributes});
  if ((piece.attributes & kLocked) != 0) raw::checked(SYS_mlock, target, new_length);
  raw_mprotect(reinterpret_cast<void*>(target), new_length, piece.protection);
  if ((flags & MREMAP_DONTUNMAP) == 0) return unmap(piece.start, piece.length());
  set_locked(piece.start, piece.length(), 0);
  if (core.managed.load())
    drop(piece.start, piece.length());
  else
    raw_madvise(memory, piece.length(), MADV_DONTNEED);
  LockGuard no_taking(core.protection_mutex);
  return raw_mprotect(memory, piece.length(), piece.protection) == 0 ? 0 : -errno;
}

namespace {

// The kernel moves within one of its mappings at a time, and may see several where we see one region: a range that
// was moved before keeps its old page offset and does not merge with its neighbours. Where a border lies is found by
// halving; a piece of one page always lies in one mapping.
// 0, or -errno when nothing was moved.
int move_present(std::uintptr_t from, std::uintptr_t to, std::size_t length) {
  constexpr int kFlags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  if (raw::checked(SYS_mremap, from, length, length, kFlags, to) != -1) return 0;
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
  std::uint64_t shift = core.window.index_of(to).value - core.window.index_of(from).value;
  PageRun run;  // resident pages, locked, to be moved with one call
  auto first = core.window.index_of(from);
  core.pages.for_each_used(first, static_cast<std::uint32_t>(length >> kPageShift), [&](PageIndex page, PageCell&) {
    PageWord word = core.lock_waiting(page);
    if (word.state() == PageState::untouched) return core.transitions.none(page, word);
    PageIndex target{page.value + shift};
    clear_and_lock(target);
    if (word.state() == PageState::resident) {
      if (run.count == 0 || run.end() != page) {
        move_resident(run, shift);
        run = {page, 0};
      }
      ++run.count;
      return;
    }
    core.transitions.move_away(page, target, word);
  });
  move_resident(run, shift);
  return 0;
}

// One mapping of ours, or several that are alike, of which nothing special was asked.
bool Pager::Impl::is_plain(std::uintptr_t address, std::size_t length) {
  bool plain = covered_prefix(address, length) == length;
  regions.for_each(address, address + length, [&](const Region& piece) {
    plain &= !piece.surrendered && piece.attributes == 0 && piece.protection == (PROT_READ | PROT_WRITE);
  });
  core.marks.for_each(core.window.index_of(address), length >> kPageShift,
                      [&](PageIndex page) { plain &= !core.marks.is_held(page); });
  return plain;
}

bool Pager::move_contents(std::uintptr_t from, std::uintptr_t to, std::size_t length) {
  // Each move leaves up to three mappings of the kernel's behind, of which a process has 65530.
  constexpr unsigned kMovedByKernelMax = 1024;
  Impl& parts = *impl_;
  MapGuard guard(parts);
  if (!parts.is_plain(from, length) || !parts.is_plain(to, length)) return false;
  if (parts.core.managed.load())
    parts.drop(to, length);  // what is not there in the old one reads as zeros in the new one
  else if (parts.moved_by_kernel++ >= kMovedByKernelMax)
    return false;
  return parts.move_pages(from, to, length) == 0;
}

// Read ahead from a neighbour may have put zeros there already: they go. I1: both pages' busy bits are held until the
// bytes and the word are across.
void Pager::Impl::clear_and_lock(PageIndex target) {
  PageWord replaced = core.lock_waiting(target);
  core.transitions.dispose(target, replaced);
  if (replaced.state() != PageState::resident) return;
  iovec range{core.memory_of(target), kPageSize};
  core.kernel.discard({&range, 1});
}

// A run of resident pages, locked like their targets.
void Pager::Impl::move_resident(PageRun run, std::uint64_t shift) {
  for (std::uint32_t at = 0; at < run.count;) {
    PageIndex page = run.first + at, target{page.value + shift};
    std::int64_t moved = -EINVAL;
    if (core.kernel.features().move)
      moved = core.kernel.move(core.address_of(target), core.address_of(page), bytes_of_pages(run.count - at));
    if (moved == -EAGAIN) continue;
    bool there = moved > 0 || copy_page(page, target);
    std::uint32_t pages = moved > 0 ? static_cast<std::uint32_t>(moved >> kPageShift) : 1;
    core.transitions.move_resident({page, pages}, target, there);
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
