// mremap, by where source and target lie: both in far memory is the pager's, neither is the kernel's, and else the
// mapping changes hands.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "base/units.hpp"
#include "preload/known_places.hpp"
#include "preload/left_local.hpp"
#include "preload/limits.hpp"
#include "preload/mappings.hpp"
#include "preload/pieces.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"
#include "preload/uninterrupted.hpp"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace hinterland::mappings {
namespace {

constexpr std::size_t kUserBytes = std::size_t{1} << 47;

struct Request {
  std::uintptr_t address;
  std::size_t old_length, new_length;  // whole pages
  int flags;                           // with MREMAP_FIXED
  std::uintptr_t target;
};

bool valid(const Request& request) {
  const bool overlap =
      request.target < request.address + request.old_length && request.address < request.target + request.new_length;
  return page_floor(request.address) == request.address && page_floor(request.target) == request.target &&
         request.new_length != 0 && request.new_length <= kUserBytes &&
         request.target <= kUserBytes - request.new_length && (request.flags & MREMAP_MAYMOVE) != 0 && !overlap &&
         (request.flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)) == 0 &&
         ((request.flags & MREMAP_DONTUNMAP) == 0 || request.old_length == request.new_length);
}

bool is_mapped(std::uintptr_t page) {
  unsigned char ignored;
  return raw::mincore(page, kPageSize, &ignored) == 0;
}

std::uintptr_t end_of_piece(std::uintptr_t at, std::uintptr_t end) { return pager().end_of_piece(at, end); }

// The target's pages are gone, and the kernel's mapping takes their place. The target lies wholly in the window, or
// wholly outside.
std::intptr_t hand_over(std::uintptr_t from, std::size_t length, int flags, std::uintptr_t target) {
  return uninterrupted([=]() -> std::intptr_t {
    if (int error = make_way(target, length); error < 0) return error;
    std::intptr_t result = raw::mremap(from, length, length, flags, target);
    if (raw::failed(result) && pager().in_window(target)) pager().unmap(target, length);
    return result;
  });
}

// Of the same size: whatever is mapped moves, and a hole leaves what is there in the target.
std::intptr_t move_in(const Request& request) {
  for (std::size_t at = 0; at < request.old_length;) {
    std::size_t end = at;
    while (end < request.old_length && is_mapped(request.address + end)) end += kPageSize;
    if (end > at) {
      std::intptr_t moved = hand_over(request.address + at, end - at, request.flags, request.target + at);
      if (raw::failed(moved)) return moved;
    }
    at = std::max(end, at + kPageSize);
  }
  return static_cast<std::intptr_t>(request.target);
}

bool overlap(std::uintptr_t a, std::uintptr_t b, std::size_t length) { return a < b + length && b < a + length; }

// Addresses for `length` bytes that nobody has, and that share none with those at `target`: a reservation of ours.
std::intptr_t reserve_apart(std::size_t length, std::uintptr_t target) {
  constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const std::intptr_t reserved = raw::mmap(0, length, PROT_NONE, kReserve);
  if (raw::failed(reserved) || !overlap(static_cast<std::uintptr_t>(reserved), target, length)) return reserved;
  const std::intptr_t next = reserve_apart(length, target);  // where this one does not lie: at most two ends of it
  raw::munmap(static_cast<std::uintptr_t>(reserved), length);
  return next;
}

// To a larger size, wherever there is room beside the target. Where that is refused nothing has changed.
std::intptr_t grow_apart(const Request& request) {
  const std::size_t old = request.old_length, length = request.new_length;
  const std::intptr_t result = raw::mremap(request.address, old, length, MREMAP_MAYMOVE, 0);
  if (raw::failed(result)) return result;
  const auto grown = static_cast<std::uintptr_t>(result);
  if (!overlap(grown, request.target, length)) return result;
  const std::intptr_t apart = reserve_apart(length, request.target);
  constexpr int kThere = MREMAP_MAYMOVE | MREMAP_FIXED;
  std::intptr_t moved = apart;
  if (!raw::failed(apart)) moved = raw::mremap(grown, length, length, kThere, static_cast<std::uintptr_t>(apart));
  if (!raw::failed(moved)) return moved;
  raw::munmap(grown + old, length - old);
  if (old != 0 && grown != request.address) raw::mremap(grown, old, old, kThere, request.address);
  return moved;
}

// Of another size: first to its new size elsewhere, which may be refused and then has changed nothing.
std::intptr_t resize_and_move_in(const Request& request) {
  if (request.old_length > request.new_length) {
    if (int error = raw::munmap(request.address + request.new_length, request.old_length - request.new_length);
        error != 0)
      return error;
    return hand_over(request.address, request.new_length, request.flags, request.target);
  }
  const std::intptr_t grown = grow_apart(request);
  if (raw::failed(grown)) return grown;
  return hand_over(static_cast<std::uintptr_t>(grown), request.new_length, request.flags, request.target);
}

// A second mapping of what lies at the target. Where there can be one, the kernel unmaps the target, and has no
// source.
std::intptr_t onto_itself(const Request& request) {
  const std::intptr_t second = raw::mremap(request.address, 0, request.new_length, MREMAP_MAYMOVE, 0);
  if (raw::failed(second)) return second;
  raw::munmap(static_cast<std::uintptr_t>(second), request.new_length);
  const int error = unmap(request.target, request.new_length);
  return error != 0 ? error : -EFAULT;
}

std::intptr_t over_far(const Request& request) {
  if (!valid(request)) return -EINVAL;
  if (!is_mapped(request.address)) return -EFAULT;  // before anything is changed
  if (request.old_length == 0 && request.address == request.target) return onto_itself(request);
  return request.old_length == request.new_length ? move_in(request) : resize_and_move_in(request);
}

std::intptr_t into_window(const Request& request) {
  if (!pager().in_window(request.target) || !pager().in_window(request.target + request.new_length - 1))
    return -EINVAL;
  std::intptr_t result = over_far(request);
  if (!raw::failed(result) && (request.flags & MREMAP_DONTUNMAP) == 0 && request.old_length != 0) {
    left_local::remove(request.address, request.old_length);
    known_places::remove(request.address, request.old_length);
  }
  return result;
}

// What the program has not mapped itself, and is there, stays what it is: MAP_FIXED over it is local, too.
bool may_become_far(std::uintptr_t address, std::size_t length) {
  constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  auto is_ours_or_free = [](std::uintptr_t at, std::size_t bytes) {
    if (pager().contains(at) || known_places::contains(at)) return 0;
    if (raw::failed(raw::mmap(at, bytes, PROT_NONE, kReserve))) return 1;
    raw::munmap(at, bytes);  // a hole again, should the call fail
    return 0;
  };
  auto end = [](std::uintptr_t at, std::uintptr_t limit) {
    return known_places::end_of_piece(at, pager().end_of_piece(at, limit));
  };
  return pager().covers_all_addresses() && !pager().overlaps_window(address, length) &&
         for_pieces(address, length, end, is_ours_or_free) == 0;
}

// What has come there is far. Behind a hole in the source, what was there before stays what it was.
void note_far(std::uintptr_t address, std::size_t length) {
  for_pieces(address, length, end_of_piece, [](std::uintptr_t at, std::size_t bytes) {
    if (pager().contains(at)) {
      left_local::remove(at, bytes);
      known_places::remove(at, bytes);
    }
    return 0;
  });
}

std::intptr_t move_far(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                       std::uintptr_t target) {
  const std::size_t length = page_ceil(new_length);
  const bool plain = page_floor(target) == target && length != 0 && length <= kUserBytes &&
                     target <= kUserBytes - length && target + length <= kUserBytes - kPageSize;
  if (!plain || pager().overlaps_window(target, length))
    return uninterrupted([=] { return pager().remap(address, old_length, new_length, flags, target); });
  const bool overlap = target < address + page_ceil(old_length) && address < target + length;
  if (!overlap && (flags & MREMAP_MAYMOVE) != 0 && may_become_far(target, length)) {
    std::intptr_t moved =
        uninterrupted([=] { return pager().remap(address, old_length, new_length, flags, target); });
    if (moved != -ENOMEM) {
      if (!raw::failed(moved)) note_far(target, length);
      return moved;
    }
  }
  std::intptr_t moved = uninterrupted([=] {
    return pager().move_out(address, old_length, new_length, flags, target,
                            [](std::uintptr_t at, std::size_t bytes) { left_local::add(at, bytes); });
  });
  if (!raw::failed(moved)) known_places::add(target, length);
  return moved;
}

// From what is not far, to a place that the caller chose, or the kernel.
std::intptr_t move_local(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                         std::uintptr_t target) {
  const bool onto_far = (flags & MREMAP_FIXED) != 0 && pager().overlaps(target, page_ceil(new_length));
  const std::intptr_t result = onto_far
                                   ? over_far({address, page_ceil(old_length), page_ceil(new_length), flags, target})
                                   : raw::mremap(address, old_length, new_length, flags, target);
  if (raw::failed(result)) return result;
  const auto to = static_cast<std::uintptr_t>(result);
  const bool known = known_places::contains(address);
  if (old_length != 0) {
    left_local::moved(address, old_length, to, new_length);
    if ((flags & MREMAP_DONTUNMAP) == 0) known_places::remove(address, old_length);
  }
  if (known) known_places::add(to, new_length);
  return result;
}

// Far memory outside of the window and other mappings, next to each other. Each moves by itself, as in the kernel
// since Linux 6.17, which takes one at a time before; and what is cut off in place is unmapped, whatever it is.
std::intptr_t remap_pieces(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                           std::uintptr_t target) {
  const std::size_t old = page_ceil(old_length), length = page_ceil(new_length);
  const bool to_fixed = (flags & MREMAP_FIXED) != 0;
  if (page_floor(address) != address || length == 0 || (flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)))
    return -EINVAL;
  if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0 && (flags & MREMAP_MAYMOVE) == 0) return -EINVAL;
  if ((flags & MREMAP_DONTUNMAP) != 0 && old != length) return -EINVAL;
  const bool overlap = target < address + old && address < target + length;
  if (length > kUserBytes) return -EINVAL;
  if (to_fixed && (overlap || page_floor(target) != target || target > kUserBytes - length)) return -EINVAL;
  if (!pager().contains(address) && !is_mapped(address)) return -EFAULT;
  if (!to_fixed && (flags & MREMAP_DONTUNMAP) == 0 && length <= old) {
    if (length == old) return static_cast<std::intptr_t>(address);
    int error = unmap(address + length, old - length);
    return error != 0 ? error : static_cast<std::intptr_t>(address);
  }
  if (!to_fixed || old < length) return -EFAULT;
  if (length < old) {
    const std::intptr_t moved = remap(address, length, length, flags, target);
    if (raw::failed(moved)) return moved;
    const int error = unmap(address + length, old - length);
    return error != 0 ? error : moved;
  }
  int error = for_pieces(address, old, end_of_piece, [&](std::uintptr_t at, std::size_t bytes) {
    for (std::uintptr_t from = at, end = at + bytes, next = 0; from < end; from = next) {
      const bool there = pager().contains(at) || is_mapped(from);
      next = from + kPageSize;
      while (next < end && (pager().contains(at) || is_mapped(next) == there)) next += kPageSize;
      if (!there) continue;
      std::intptr_t moved = remap(from, next - from, next - from, flags, target + (from - address));
      if (raw::failed(moved)) return static_cast<int>(moved);
    }
    return 0;
  });
  return error != 0 ? error : static_cast<std::intptr_t>(target);
}

}  // namespace

std::intptr_t remap(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                    std::uintptr_t new_address) {
  if (new_length > old_length && page_ceil(new_length) >= new_length &&
      !limits::allow(page_ceil(new_length - old_length), true))
    return -ENOMEM;
  const bool to_fixed = (flags & MREMAP_FIXED) != 0;
  const std::size_t least = old_length == 0 ? 1 : old_length;
  const bool plain = page_floor(address) == address && page_ceil(least) >= least && page_ceil(least) <= kUserBytes &&
                     address <= kUserBytes - page_ceil(least);
  const bool mixed = plain && pager().end_of_piece(address, address + page_ceil(least)) != address + page_ceil(least);
  if (mixed && (pager().in_window(address) || pager().overlaps_window(address, page_ceil(least))))
    return -EFAULT;  // one mapping never crosses the window's edge
  if (mixed) return remap_pieces(address, old_length, new_length, flags, new_address);
  const bool into = to_fixed && pager().overlaps_window(new_address, new_length == 0 ? 1 : new_length);
  if (pager().contains(address)) {
    if (to_fixed) return move_far(address, old_length, new_length, flags, new_address);
    return uninterrupted([=] { return pager().remap(address, old_length, new_length, flags, new_address); });
  }
  if (into) return into_window({address, page_ceil(old_length), page_ceil(new_length), flags, new_address});
  return move_local(address, old_length, new_length, flags, new_address);
}

}  // namespace hinterland::mappings
