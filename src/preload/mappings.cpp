#include "preload/mappings.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "base/inside.hpp"
#include "base/units.hpp"
#include "preload/left_local.hpp"
#include "preload/move_out.hpp"
#include "preload/pieces.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"

namespace hinterland::mappings {
namespace {

constexpr std::uintptr_t kTaskEnd = (std::uintptr_t{1} << 47) - kPageSize;  // end of user addresses
// A small mapping with a hint wants to be near something (a JIT's code); a large one takes any place.
constexpr std::size_t kNearHintBytes = 128 * kKiB;
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1
#endif
constexpr int kKindFlags = MAP_TYPE | MAP_ANONYMOUS | MAP_FIXED | MAP_FIXED_NOREPLACE;

Edges edges() { return {pager().window_base(), pager().window_base() + pager().window_bytes()}; }

bool is_fixed(int flags) { return (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0; }
bool is_private_anonymous(int flags) {
  return (flags & MAP_TYPE) == MAP_PRIVATE && (flags & MAP_ANONYMOUS) != 0 &&
         (flags & (MAP_HUGETLB | MAP_GROWSDOWN)) == 0;
}
bool is_user_range(std::uintptr_t address, std::size_t length) {
  return length <= kTaskEnd && address <= kTaskEnd - length;
}

std::intptr_t map_outside(std::uintptr_t address, std::size_t length, int protection, int flags, int descriptor,
                          off_t offset) {
  std::intptr_t result = raw::mmap(address, length, protection, flags, descriptor, offset);
  if (raw::failed(result)) return result;
  bool counted = (flags & MAP_TYPE) == MAP_PRIVATE && (flags & MAP_ANONYMOUS) != 0;
  if (counted)
    left_local::add(static_cast<std::uintptr_t>(result), length);
  else if (is_fixed(flags))
    left_local::remove(static_cast<std::uintptr_t>(result), length);
  return result;
}

// A mapping of another kind, at a fixed place in the window. Tried elsewhere first: when it cannot be made, what is
// there stays.
std::intptr_t map_foreign_inside(std::uintptr_t address, std::size_t length, int protection, int flags,
                                 int descriptor, off_t offset) {
  int trial_flags = flags & ~(MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_POPULATE | MAP_LOCKED);
  std::intptr_t trial = raw::mmap(0, length, protection, trial_flags, descriptor, offset);
  if (raw::failed(trial)) return trial;
  raw::munmap(static_cast<std::uintptr_t>(trial), length);
  if ((flags & MAP_FIXED_NOREPLACE) != 0) {
    std::intptr_t free = pager().map_at(address, length, PROT_NONE, MAP_NORESERVE, true);
    if (raw::failed(free)) return free;
    flags = (flags & ~MAP_FIXED_NOREPLACE) | MAP_FIXED;
  }
  if (int error = pager().surrender(address, length); error < 0) return error;
  return raw::mmap(address, length, protection, flags, descriptor, offset);
}

std::intptr_t map_inside(std::uintptr_t address, std::size_t length, int protection, int flags, int descriptor,
                         off_t offset) {
  InsideRuntime inside;
  if (!is_private_anonymous(flags)) return map_foreign_inside(address, length, protection, flags, descriptor, offset);
  return pager().map_at(address, length, protection, flags & ~kKindFlags, (flags & MAP_FIXED_NOREPLACE) != 0);
}

std::intptr_t map_fixed(std::uintptr_t address, std::size_t length, int protection, int flags, int descriptor,
                        off_t offset) {
  length = page_ceil(length);
  if (!is_user_range(address, length)) return -ENOMEM;
  const std::uintptr_t start = address;
  int error = for_pieces(edges(), address, length, [&](std::uintptr_t at, std::size_t bytes, bool in_window) {
    off_t from = offset + static_cast<off_t>(at - start);
    std::intptr_t result = in_window ? map_inside(at, bytes, protection, flags, descriptor, from)
                                     : map_outside(at, bytes, protection, flags, descriptor, from);
    return raw::failed(result) ? static_cast<int>(result) : 0;
  });
  return error != 0 ? error : static_cast<std::intptr_t>(start);
}

// A hint in the window is honoured where the place is free, as the kernel does.
std::intptr_t map_far(std::uintptr_t hint, std::size_t length, int protection, int flags) {
  InsideRuntime inside;
  int extra = flags & ~kKindFlags;
  hint = page_ceil(hint);
  if (hint >= edges().start && hint < edges().end && page_ceil(length) <= edges().end - hint) {
    std::intptr_t there = pager().map_at(hint, page_ceil(length), protection, extra, true);
    if (!raw::failed(there)) return there;
  }
  return pager().map(page_ceil(length), kPageSize, protection, extra);
}

}  // namespace

std::intptr_t map(std::uintptr_t address, std::size_t length, int protection, int flags, int descriptor,
                  off_t offset) {
  if (page_floor(static_cast<std::uintptr_t>(offset)) != static_cast<std::uintptr_t>(offset)) return -EINVAL;
  bool odd_request = length == 0 || page_ceil(length) < length || page_ceil(length) > kTaskEnd;
  if (!odd_request && is_fixed(flags) && page_floor(address) == address && pager().overlaps(address, length))
    return map_fixed(address, length, protection, flags, descriptor, offset);
  bool near_hint = address != 0 && length <= kNearHintBytes && !pager().contains(address);
  bool ours = is_private_anonymous(flags) && (flags & (MAP_32BIT | MAP_STACK)) == 0 && !is_fixed(flags) &&
              length >= kPageSize && !odd_request && !near_hint;
  if (ours) return map_far(address, length, protection, flags);
  return map_outside(address, length, protection, flags, descriptor, offset);
}

int unmap(std::uintptr_t address, std::size_t length) {
  if (page_floor(address) != address || length == 0 || !is_user_range(address, page_ceil(length))) return -EINVAL;
  return for_pieces(edges(), address, page_ceil(length), [](std::uintptr_t at, std::size_t bytes, bool in_window) {
    if (in_window) {
      InsideRuntime inside;
      return pager().unmap(at, bytes);
    }
    int result = raw::munmap(at, bytes);
    if (result == 0) left_local::remove(at, bytes);
    return result;
  });
}

int protect(std::uintptr_t address, std::size_t length, int protection) {
  bool plain = page_floor(address) == address && length != 0 && is_user_range(address, page_ceil(length)) &&
               (protection & ~(PROT_READ | PROT_WRITE | PROT_EXEC)) == 0;
  if (!plain || !pager().overlaps(address, length)) return raw::mprotect(address, length, protection);
  return for_pieces(edges(), address, page_ceil(length),
                    [protection](std::uintptr_t at, std::size_t bytes, bool in_window) {
                      if (!in_window) return raw::mprotect(at, bytes, protection);
                      InsideRuntime inside;
                      return pager().protect(at, bytes, protection);
                    });
}

int advise(std::uintptr_t address, std::size_t length, int advice) {
  bool plain = page_floor(address) == address && length != 0 && is_user_range(address, page_ceil(length));
  if (!plain || !pager().overlaps(address, length)) return raw::madvise(address, length, advice);
  // An advice that does not exist is refused before the range is looked at, by asking about nothing.
  if (advice < 0 || advice > MADV_COLLAPSE)
    if (int error = raw::madvise(page_floor(address), 0, advice); error != 0) return error;
  bool holes = false;  // the kernel goes on after a hole, and says ENOMEM at the end
  int error =
      for_pieces(edges(), address, page_ceil(length), [&](std::uintptr_t at, std::size_t bytes, bool in_window) {
        InsideRuntime inside;
        int result = in_window ? pager().advise(at, bytes, advice) : raw::madvise(at, bytes, advice);
        if (result != -ENOMEM) return result;
        holes = true;
        return 0;
      });
  return error == 0 && holes ? -ENOMEM : error;
}

int core(std::uintptr_t address, std::size_t length, unsigned char* vector) {
  bool plain = page_floor(address) == address && length != 0 && is_user_range(address, page_ceil(length));
  if (!plain || !pager().overlaps(address, length)) return raw::mincore(address, length, vector);
  return for_pieces(edges(), address, page_ceil(length), [&](std::uintptr_t at, std::size_t bytes, bool in_window) {
    unsigned char* out = vector + ((at - address) >> kPageShift);
    InsideRuntime inside;
    return in_window ? pager().core(at, bytes, out) : raw::mincore(at, bytes, out);
  });
}

std::intptr_t remap(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                    std::uintptr_t new_address) {
  const bool to_fixed = (flags & MREMAP_FIXED) != 0;
  const std::size_t least = old_length == 0 ? 1 : old_length;
  const bool from_window = pager().contains(address);
  const bool target_touches = to_fixed && pager().overlaps(new_address, new_length == 0 ? 1 : new_length);
  const bool straddles = page_floor(address) == address && is_user_range(address, page_ceil(least)) &&
                         pager().overlaps(address, least) &&
                         (!from_window || !pager().contains(address + page_ceil(least) - 1));
  if (straddles) return -EFAULT;  // one mapping never crosses the edge
  if (from_window && (!to_fixed || target_touches)) {
    InsideRuntime inside;
    return pager().remap(address, old_length, new_length, flags, new_address);
  }
  if (from_window) return move_out_of_window(address, old_length, new_length, flags, new_address);
  if (target_touches) {
    bool valid = page_floor(address) == address && page_floor(new_address) == new_address && new_length != 0 &&
                 (flags & MREMAP_MAYMOVE) != 0 && pager().contains(new_address) &&
                 pager().contains(new_address + page_ceil(new_length) - 1);
    if (!valid) return -EINVAL;
    InsideRuntime inside;
    if (int error = pager().surrender(new_address, page_ceil(new_length)); error < 0) return error;
    std::intptr_t result = raw::mremap(address, old_length, new_length, flags, new_address);
    if (raw::failed(result)) pager().unmap(new_address, page_ceil(new_length));
    return result;
  }
  std::intptr_t result = raw::mremap(address, old_length, new_length, flags, new_address);
  if (!raw::failed(result) && old_length != 0)
    left_local::moved(address, old_length, static_cast<std::uintptr_t>(result), new_length);
  return result;
}

}  // namespace hinterland::mappings
