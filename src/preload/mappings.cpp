#include "preload/mappings.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>

#include "base/log.hpp"
#include "base/units.hpp"
#include "preload/far_heap.hpp"
#include "preload/known_places.hpp"
#include "preload/left_local.hpp"
#include "preload/limits.hpp"
#include "preload/pieces.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"
#include "preload/uninterrupted.hpp"

namespace hinterland::mappings {

int make_way(std::uintptr_t address, std::size_t length) {
  far_heap::note_request(address, length);
  return for_pieces(
      address, length, [](std::uintptr_t at, std::uintptr_t end) { return pager().end_of_piece(at, end); },
      [](std::uintptr_t at, std::size_t bytes) { return pager().contains(at) ? pager().surrender(at, bytes) : 0; });
}

namespace {

constexpr std::uintptr_t kTaskEnd = (std::uintptr_t{1} << 47) - kPageSize;  // end of user addresses
// A small mapping with a hint wants to be near something (a JIT's code); a large one takes any place.
constexpr std::size_t kNearHintBytes = 128 * kKiB;
constexpr int kProtSem = 8;  // PROT_SEM: for other architectures
constexpr int kKindFlags = MAP_TYPE | MAP_ANONYMOUS | MAP_FIXED | MAP_FIXED_NOREPLACE;

// piece(address, length, ours): `ours` are addresses of far memory.
template <typename Piece>
int for_pieces(std::uintptr_t address, std::size_t length, Piece piece) {
  return hinterland::for_pieces(
      address, length, [](std::uintptr_t at, std::uintptr_t end) { return pager().end_of_piece(at, end); },
      [&piece](std::uintptr_t at, std::size_t bytes) { return piece(at, bytes, pager().contains(at)); });
}

bool is_fixed(int flags) { return (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0; }
bool is_private_anonymous(int flags) {
  return (flags & MAP_TYPE) == MAP_PRIVATE && (flags & MAP_ANONYMOUS) != 0 &&
         (flags & (MAP_HUGETLB | MAP_GROWSDOWN)) == 0;
}
// Whole pages; a length that wraps around when it is rounded up is none.
bool is_user_range(std::uintptr_t address, std::size_t length) {
  return length <= kTaskEnd && address <= kTaskEnd - length;
}
bool is_plain_range(std::uintptr_t address, std::size_t length) {
  return page_floor(address) == address && length != 0 && page_ceil(length) >= length &&
         is_user_range(address, page_ceil(length));
}

// A mapping that the kernel has made outside of far memory.
void note_local(std::uintptr_t address, std::size_t length, int flags) {
  known_places::add(address, length);
  bool counted = (flags & MAP_TYPE) == MAP_PRIVATE && (flags & MAP_ANONYMOUS) != 0;
  if (counted)
    left_local::add(address, length);
  else if (is_fixed(flags))
    left_local::remove(address, length);
}

std::intptr_t map_outside(std::uintptr_t address, std::size_t length, int protection, int flags, int descriptor,
                          off_t offset) {
  std::intptr_t result = raw::mmap(address, length, protection, flags, descriptor, offset);
  if (!raw::failed(result)) note_local(static_cast<std::uintptr_t>(result), length, flags);
  return result;
}

// What can be far outside of the window. Locked memory stays local in any case.
bool may_be_far_outside(std::size_t length, int flags) {
  return pager().covers_all_addresses() && is_private_anonymous(flags) && (flags & (MAP_STACK | MAP_LOCKED)) == 0 &&
         length >= kPageSize;
}

// Puts far memory in the place of what is there, where it can be. False: what is there is local.
bool take_in(std::uintptr_t address, std::size_t length, int protection, int flags) {
  std::intptr_t taken =
      uninterrupted([=] { return pager().take_in(address, length, protection, flags & ~kKindFlags); });
  if (raw::failed(taken)) return false;
  left_local::remove(address, length);
  known_places::remove(address, length);
  return true;
}

// At the place that the kernel gives it, or refuses: its rules for addresses are not ours to repeat.
std::intptr_t map_where_the_kernel_says(std::uintptr_t address, std::size_t length, int protection, int flags,
                                        int descriptor, off_t offset) {
  const bool far = may_be_far_outside(length, flags);
  std::intptr_t made =
      raw::mmap(address, length, protection, far ? flags & ~MAP_POPULATE : flags, descriptor, offset);
  if (raw::failed(made)) return made;
  const auto at = static_cast<std::uintptr_t>(made);
  if (!far || !take_in(at, page_ceil(length), protection, flags)) note_local(at, length, flags);
  return made;
}

// MAP_FIXED where no far memory is. What the program has mapped there itself may be replaced by far memory. Of
// others' mappings (libraries, stacks, the heap of brk) nobody knows what relies on them: what replaces them stays
// local.
std::intptr_t map_fixed_outside(std::uintptr_t address, std::size_t length, int protection, int flags, int descriptor,
                                off_t offset) {
  auto end_of_piece = [](std::uintptr_t at, std::uintptr_t end) { return known_places::end_of_piece(at, end); };
  int error = hinterland::for_pieces(address, length, end_of_piece, [&](std::uintptr_t at, std::size_t bytes) {
    constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    const bool replaceable = known_places::contains(at) || !raw::failed(raw::mmap(at, bytes, PROT_NONE, kReserve));
    if (replaceable && take_in(at, bytes, protection, flags)) return 0;
    std::intptr_t made = map_outside(at, bytes, protection, flags, descriptor, offset);
    if (raw::failed(made) && replaceable && !known_places::contains(at)) raw::munmap(at, bytes);
    return raw::failed(made) ? static_cast<int>(made) : 0;
  });
  return error != 0 ? error : static_cast<std::intptr_t>(address);
}

// What the kernel says of such a mapping, tried elsewhere: when it cannot be made, what is there stays.
std::intptr_t try_elsewhere(std::uintptr_t address, std::size_t length, int protection, int flags, int descriptor,
                            off_t offset) {
  if ((flags & MAP_HUGETLB) != 0) {
    unsigned size_bits = static_cast<unsigned>(flags) >> MAP_HUGE_SHIFT & MAP_HUGE_MASK;
    std::uintptr_t huge_page = std::uintptr_t{1} << (size_bits == 0 ? 21 : size_bits);
    if ((address & (huge_page - 1)) != 0) return -EINVAL;
  }
  flags &= ~(MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_POPULATE | MAP_LOCKED);
  std::intptr_t trial = raw::mmap(0, length, protection, flags, descriptor, offset);
  if (!raw::failed(trial)) raw::munmap(static_cast<std::uintptr_t>(trial), length);
  return trial;
}

// A mapping of another kind, at a fixed place in the window.
std::intptr_t map_foreign_inside(std::uintptr_t address, std::size_t length, int protection, int flags,
                                 int descriptor, off_t offset) {
  std::intptr_t trial = try_elsewhere(address, length, protection, flags, descriptor, offset);
  if (trial == -EBADF) return trial;
  if ((flags & MAP_FIXED_NOREPLACE) != 0) {
    std::intptr_t free = pager().map_at(address, length, PROT_NONE, MAP_NORESERVE, true);
    if (raw::failed(free)) return free;
    if (raw::failed(trial)) pager().unmap(address, length);
    flags = (flags & ~MAP_FIXED_NOREPLACE) | MAP_FIXED;
  }
  if (raw::failed(trial)) return trial;
  if (int error = pager().surrender(address, length); error < 0) return error;
  return raw::mmap(address, length, protection, flags, descriptor, offset);
}

std::intptr_t map_inside(std::uintptr_t address, std::size_t length, int protection, int flags, int descriptor,
                         off_t offset) {
  return uninterrupted([=] {
    if (!is_private_anonymous(flags))
      return map_foreign_inside(address, length, protection, flags, descriptor, offset);
    return pager().map_at(address, length, protection, flags & ~kKindFlags, (flags & MAP_FIXED_NOREPLACE) != 0);
  });
}

// The kernel takes MAP_FIXED_NOREPLACE for one of the flags that a file system must know.
int refuse_validated(std::uintptr_t address, std::size_t length) {
  return uninterrupted([=] {
    std::intptr_t free = pager().map_at(address, length, PROT_NONE, MAP_NORESERVE, true);
    if (raw::failed(free)) return static_cast<int>(free);
    pager().unmap(address, length);
    return -EOPNOTSUPP;
  });
}

// What cannot be far, in the place of whatever is there outside of the window: one mapping, as natively, which can be
// moved as one.
std::intptr_t map_local_outside(std::uintptr_t address, std::size_t length, int protection, int flags, int descriptor,
                                off_t offset) {
  if (pager().overlaps(address, length)) {
    const std::intptr_t trial = try_elsewhere(address, length, protection, flags, descriptor, offset);
    if (raw::failed(trial)) return trial;
    if (int error = uninterrupted([=] { return make_way(address, length); }); error < 0) return error;
  }
  return map_outside(address, length, protection, flags, descriptor, offset);
}

std::intptr_t map_fixed_beside(std::uintptr_t address, std::size_t length, int protection, int flags, int descriptor,
                               off_t offset) {
  if ((flags & MAP_FIXED_NOREPLACE) != 0)
    return map_where_the_kernel_says(address, length, protection, flags, descriptor, offset);
  if (!may_be_far_outside(length, flags))
    return map_local_outside(address, length, protection, flags, descriptor, offset);
  if (pager().contains(address))
    return uninterrupted([=] { return pager().map_at(address, length, protection, flags & ~kKindFlags, false); });
  return map_fixed_outside(address, length, protection, flags, descriptor, offset);
}

std::intptr_t map_fixed(std::uintptr_t address, std::size_t length, int protection, int flags, int descriptor,
                        off_t offset) {
  if ((flags & (MAP_TYPE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE)) == (MAP_SHARED_VALIDATE | MAP_FIXED_NOREPLACE) &&
      pager().in_window(address) && is_user_range(address, page_ceil(length)) &&
      pager().in_window(address + page_ceil(length) - 1))
    if (int error = refuse_validated(address, page_ceil(length)); error != -EOPNOTSUPP || descriptor >= 0)
      return error;
  length = page_ceil(length);
  if (!is_user_range(address, length)) return -ENOMEM;
  // What is not replaced, or not far, is one mapping; far memory is the same in one piece or in several.
  const bool whole = (flags & MAP_FIXED_NOREPLACE) != 0 || !may_be_far_outside(length, flags);
  if (whole && !pager().overlaps_window(address, length))
    return map_fixed_beside(address, length, protection, flags, descriptor, offset);
  far_heap::note_request(address, length);
  const std::uintptr_t start = address;
  int error = for_pieces(address, length, [&](std::uintptr_t at, std::size_t bytes, bool) {
    off_t from = offset + static_cast<off_t>(at - start);
    std::intptr_t result = pager().in_window(at) ? map_inside(at, bytes, protection, flags, descriptor, from)
                                                 : map_fixed_beside(at, bytes, protection, flags, descriptor, from);
    return raw::failed(result) ? static_cast<int>(result) : 0;
  });
  return error != 0 ? error : static_cast<std::intptr_t>(start);
}

// Where nothing outside of the window can be far, a large mapping with a hint is put into it: most programs take any
// place. Some insist (Java with
// ZGC, whose pointers have meaning in their high bits), and show it: they give such a mapping back at once, and ask
// for as much at another place, thousands of times. Java with other collectors asks for some twenty places, at which
// its pointers would be shorter, and then takes any: what it got outside the window would be local.
class Hints {
 public:
  // relaxed, all: a thread knows what it did itself, and between threads a chance missed is a mapping in the window
  void displaced(std::uintptr_t to, std::size_t length) {
    to_.store(to, std::memory_order_relaxed);
    length_.store(length, std::memory_order_relaxed);
  }
  void unmapped(std::uintptr_t address, std::size_t length) {
    if (address != to_.load(std::memory_order_relaxed) || length != length_.load(std::memory_order_relaxed)) return;
    to_.store(0, std::memory_order_relaxed);
    bool again = refused_.exchange(length, std::memory_order_relaxed) == length;
    times_.store(again ? times_.load(std::memory_order_relaxed) + 1 : 1, std::memory_order_relaxed);
  }
  bool insists_on(std::size_t length, int protection) const {
    return protection == PROT_NONE && length == refused_.load(std::memory_order_relaxed) &&
           times_.load(std::memory_order_relaxed) >= kTimes;
  }

 private:
  static constexpr unsigned kTimes = 64;
  std::atomic<std::uintptr_t> to_{0};                // where the latest one was put
  std::atomic<std::size_t> length_{0}, refused_{0};  // of that; of the latest that was given back
  std::atomic<unsigned> times_{0};                   // how often one of that length was, in a row
};
constinit Hints g_hints;

// 0: something else is there.
std::intptr_t map_outside_at(std::uintptr_t address, std::size_t length, int protection, int flags, int descriptor,
                             off_t offset) {
  std::intptr_t made = map_outside(address, length, protection, flags, descriptor, offset);
  if (raw::failed(made) || made == static_cast<std::intptr_t>(page_floor(address))) return made;
  raw::munmap(static_cast<std::uintptr_t>(made), length);
  known_places::remove(static_cast<std::uintptr_t>(made), page_ceil(length));
  left_local::remove(static_cast<std::uintptr_t>(made), length);
  return 0;
}

// As the kernel does: there if the place is free. Else, of what wants to be near something (a JIT's code), where the
// kernel chooses; 0: anywhere.
std::intptr_t map_as_hinted(std::uintptr_t hint, std::size_t length, int protection, int flags) {
  std::intptr_t made = raw::mmap(hint, length, protection, flags & ~MAP_POPULATE, -1, 0);
  if (raw::failed(made)) return made;
  const auto at = static_cast<std::uintptr_t>(made);
  const bool there = at == page_floor(hint) || (flags & MAP_32BIT) != 0;
  if (!there && length > kNearHintBytes) {
    raw::munmap(at, length);
    return 0;
  }
  if (!there || !take_in(at, page_ceil(length), protection, flags)) note_local(at, length, flags);
  return made;
}

// Natively it could be had, and reserving is all that many programs do with such a range.
std::intptr_t map_too_large(std::uintptr_t address, std::size_t length, int protection, int flags) {
  std::intptr_t made = map_where_the_kernel_says(address, length, protection, flags, -1, 0);
  static std::atomic<bool> told{false};
  const bool local = !raw::failed(made) && !pager().contains(static_cast<std::uintptr_t>(made));
  if (local && !told.exchange(true))
    log::info("a mapping of %zu GiB does not fit into the addresses for far memory (--window): it stays local",
              length / kGiB);
  return made;
}

// A hint in the window is honoured where the place is free, as the kernel does; for mappings of every kind, since to
// the kernel alone the whole window is in use. 0: it cannot be.
std::intptr_t map_at_hint(std::uintptr_t hint, std::size_t length, int protection, int flags, int descriptor,
                          off_t offset) {
  hint = page_floor(hint);
  length = page_ceil(length);
  const std::uintptr_t end = pager().window_base() + pager().window_bytes();
  if (!pager().in_window(hint) || length > end - hint || (flags & (MAP_32BIT | MAP_GROWSDOWN)) != 0) return 0;
  std::intptr_t there = map_inside(hint, length, protection, flags | MAP_FIXED_NOREPLACE, descriptor, offset);
  return raw::failed(there) ? 0 : there;
}

}  // namespace

std::intptr_t map(std::uintptr_t address, std::size_t length, int protection, int flags, int descriptor,
                  off_t offset) {
  if (page_floor(static_cast<std::uintptr_t>(offset)) != static_cast<std::uintptr_t>(offset)) return -EINVAL;
  bool odd_request = length == 0 || page_ceil(length) < length || page_ceil(length) > kTaskEnd;
  bool counts_as_data = (flags & MAP_TYPE) == MAP_PRIVATE && (protection & PROT_WRITE) != 0;
  if (!odd_request && !is_fixed(flags) && !limits::allow(page_ceil(length), counts_as_data)) return -ENOMEM;
  const bool far_outside = may_be_far_outside(length, flags);
  if (!odd_request && is_fixed(flags) && page_floor(address) == address &&
      (far_outside || pager().overlaps(address, page_ceil(length))))
    return map_fixed(address, length, protection, flags, descriptor, offset);
  if (!odd_request && !is_fixed(flags) && address != 0)
    if (std::intptr_t there = map_at_hint(address, length, protection, flags, descriptor, offset); there != 0)
      return there;
  bool hint_outside = !odd_request && !is_fixed(flags) && address != 0 && !pager().in_window(address);
  if (hint_outside && far_outside)
    if (std::intptr_t made = map_as_hinted(address, length, protection, flags); made != 0) return made;
  if (hint_outside && !far_outside && g_hints.insists_on(length, protection))
    if (std::intptr_t there = map_outside_at(address, length, protection, flags, descriptor, offset); there != 0)
      return there;
  bool near_hint = hint_outside && !far_outside && length <= kNearHintBytes;
  bool ours = is_private_anonymous(flags) && (flags & (MAP_32BIT | MAP_STACK)) == 0 && !is_fixed(flags) &&
              length >= kPageSize && !odd_request && !near_hint;
  if (!ours && !odd_request && !is_fixed(flags) && far_outside)  // below 4 GiB
    return map_where_the_kernel_says(address, length, protection, flags, descriptor, offset);
  if (!ours) return map_outside(address, length, protection, flags, descriptor, offset);
  std::intptr_t made = uninterrupted([=] {
    // The heap is never left without addresses, whatever is reserved beside it.
    const std::size_t for_heap = pager().window_bytes() / 16;
    return pager().map(page_ceil(length), kPageSize, protection, flags & ~kKindFlags, for_heap);
  });
  if (made == -ENOMEM) return map_too_large(address, length, protection, flags);
  if (hint_outside && !raw::failed(made)) g_hints.displaced(static_cast<std::uintptr_t>(made), length);
  return made;
}

int unmap(std::uintptr_t address, std::size_t length) {
  g_hints.unmapped(address, length);
  if (!is_plain_range(address, length)) return -EINVAL;
  return for_pieces(address, page_ceil(length), [](std::uintptr_t at, std::size_t bytes, bool ours) {
    if (ours) return uninterrupted([=] { return pager().unmap(at, bytes); });
    int result = raw::munmap(at, bytes);
    if (result != 0) return result;
    left_local::remove(at, bytes);
    known_places::remove(at, bytes);
    return 0;
  });
}

namespace {

// Nothing in the window grows by itself: what mprotect(PROT_GROWSDOWN or PROT_GROWSUP) says depends only on whether
// there is a mapping.
int protect_growing(std::uintptr_t address, std::size_t length, int protection) {
  if ((protection & PROT_GROWSUP) != 0) length = kPageSize;
  return uninterrupted([=] {
    unsigned char ignored;
    for (std::uintptr_t at = address, end = address + length; at < end; at += kPageSize)
      if (pager().core(at, kPageSize, &ignored) == 0) return -EINVAL;
    return -ENOMEM;
  });
}

}  // namespace

int protect(std::uintptr_t address, std::size_t length, int protection) {
  const int growing = protection & (PROT_GROWSDOWN | PROT_GROWSUP);
  if (growing != 0 && growing != (PROT_GROWSDOWN | PROT_GROWSUP) && is_plain_range(address, length) &&
      pager().contains(address) &&
      pager().end_of_piece(address, address + page_ceil(length)) == address + page_ceil(length))
    return protect_growing(address, page_ceil(length), protection);
  bool plain =
      is_plain_range(address, length) && (protection & ~(PROT_READ | PROT_WRITE | PROT_EXEC | kProtSem)) == 0;
  if (!plain || !pager().overlaps(address, length)) return raw::mprotect(address, length, protection);
  far_heap::note_request(address, page_ceil(length));
  return for_pieces(address, page_ceil(length), [protection](std::uintptr_t at, std::size_t bytes, bool ours) {
    if (!ours) return raw::mprotect(at, bytes, protection);
    return uninterrupted([=] { return pager().protect(at, bytes, protection); });
  });
}

int advise(std::uintptr_t address, std::size_t length, int advice) {
  bool plain = is_plain_range(address, length);
  if (!plain || !pager().overlaps(address, length)) return raw::madvise(address, length, advice);
  // An advice that does not exist is refused before the range is looked at, by asking about nothing.
  if (advice != MADV_DONTNEED && advice != MADV_FREE)
    if (int error = raw::madvise(page_floor(address), 0, advice); error != 0) return error;
  if (advice != MADV_DONTNEED && advice != MADV_FREE) far_heap::note_request(address, page_ceil(length));
  // The kernel goes on after a hole, and says ENOMEM at the end; but the first hole ends what populates.
  const bool goes_on = advice != MADV_POPULATE_READ && advice != MADV_POPULATE_WRITE;
  bool holes = false;
  int error = for_pieces(address, page_ceil(length), [&](std::uintptr_t at, std::size_t bytes, bool ours) {
    int result =
        uninterrupted([=] { return ours ? pager().advise(at, bytes, advice) : raw::madvise(at, bytes, advice); });
    if (result != -ENOMEM || !goes_on) return result;
    holes = true;
    return 0;
  });
  return error == 0 && holes ? -ENOMEM : error;
}

int core(std::uintptr_t address, std::size_t length, unsigned char* vector) {
  bool plain = is_plain_range(address, length);
  if (!plain || !pager().overlaps(address, length)) return raw::mincore(address, length, vector);
  return for_pieces(address, page_ceil(length), [&](std::uintptr_t at, std::size_t bytes, bool ours) {
    unsigned char* out = vector + ((at - address) >> kPageShift);
    return uninterrupted([=] { return ours ? pager().core(at, bytes, out) : raw::mincore(at, bytes, out); });
  });
}

namespace {

// The range that the kernel's mlock family means: whole pages around it.
bool aligned_range(std::uintptr_t* address, std::size_t* length) {
  *length = page_ceil(*length + (*address - page_floor(*address)));
  *address = page_floor(*address);
  return *length != 0 && is_user_range(*address, *length);
}

// Ends at the first error, or, if it `goes_on`, returns it when all pieces have been locked.
int lock_pieces(std::uintptr_t start, std::size_t bytes, int flags, bool goes_on) {
  int first = 0;
  for_pieces(start, bytes, [&](std::uintptr_t at, std::size_t part, bool ours) {
    int result = uninterrupted([=] {
      if (ours) return pager().lock(at, part, flags);
      return static_cast<int>(raw::call(SYS_mlock2, static_cast<long>(at), static_cast<long>(part), flags));
    });
    if (first == 0) first = result;
    return goes_on ? 0 : result;
  });
  return first;
}

}  // namespace

int lock(std::uintptr_t address, std::size_t length, int flags) {
  std::uintptr_t start = address;
  std::size_t bytes = length;
  if ((flags & ~MLOCK_ONFAULT) != 0 || !aligned_range(&start, &bytes) || !pager().overlaps(start, bytes))
    return static_cast<int>(raw::call(SYS_mlock2, static_cast<long>(address), static_cast<long>(length), flags));
  // As the kernel does it: it locks all mappings up to the first hole, and then brings their pages in up to the first
  // that does not come (of PROT_NONE). The lock stands behind that page, too.
  far_heap::note_request(start, bytes);
  if (int error = lock_pieces(start, bytes, MLOCK_ONFAULT, false); error != 0) return error;
  return (flags & MLOCK_ONFAULT) != 0 ? 0 : lock_pieces(start, bytes, 0, true);
}

int unlock(std::uintptr_t address, std::size_t length) {
  std::uintptr_t start = address;
  std::size_t bytes = length;
  if (!aligned_range(&start, &bytes) || !pager().overlaps(start, bytes))
    return static_cast<int>(raw::call(SYS_munlock, static_cast<long>(address), static_cast<long>(length)));
  return for_pieces(start, bytes, [](std::uintptr_t at, std::size_t part, bool ours) {
    return uninterrupted([=] {
      if (ours) return pager().unlock(at, part);
      return static_cast<int>(raw::call(SYS_munlock, static_cast<long>(at), static_cast<long>(part)));
    });
  });
}

int sync(std::uintptr_t address, std::size_t length, int flags) {
  bool plain = is_plain_range(address, length);
  // Nothing can be wrong with the flags beyond this, which asks about no memory.
  if (int error = static_cast<int>(raw::call(SYS_msync, static_cast<long>(page_floor(address)), 0, flags));
      error != 0)
    return error;
  if (!plain || !pager().overlaps(address, length))
    return static_cast<int>(raw::call(SYS_msync, static_cast<long>(address), static_cast<long>(length), flags));
  bool holes = false;  // the kernel goes on after one
  int error = for_pieces(address, page_ceil(length), [&](std::uintptr_t at, std::size_t bytes, bool ours) {
    int result = uninterrupted([=] {
      if (ours) return pager().sync(at, bytes, flags);
      return static_cast<int>(raw::call(SYS_msync, static_cast<long>(at), static_cast<long>(bytes), flags));
    });
    if (result != -ENOMEM) return result;
    holes = true;
    return 0;
  });
  return error == 0 && holes ? -ENOMEM : error;
}

}  // namespace hinterland::mappings
