// mremap, by where source and target lie: both in the window is the pager's, both outside is the kernel's, and across
// its edge the mapping changes hands.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "base/units.hpp"
#include "preload/left_local.hpp"
#include "preload/limits.hpp"
#include "preload/mappings.hpp"
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
  std::uintptr_t target;               // wholly in the window
};

bool valid(const Request& request) {
  const bool overlap =
      request.target < request.address + request.old_length && request.address < request.target + request.new_length;
  return page_floor(request.address) == request.address && page_floor(request.target) == request.target &&
         request.new_length != 0 && (request.flags & MREMAP_MAYMOVE) != 0 && !overlap &&
         (request.flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)) == 0 &&
         ((request.flags & MREMAP_DONTUNMAP) == 0 || request.old_length == request.new_length) &&
         pager().contains(request.target) && pager().contains(request.target + request.new_length - 1);
}

bool is_mapped(std::uintptr_t page) {
  unsigned char ignored;
  return raw::mincore(page, kPageSize, &ignored) == 0;
}

// The target's pages are gone, and the kernel's mapping takes their place.
std::intptr_t hand_over(std::uintptr_t from, std::size_t old_length, std::size_t new_length, int flags,
                        std::uintptr_t target) {
  return uninterrupted([=]() -> std::intptr_t {
    if (int error = pager().surrender(target, new_length); error < 0) return error;
    std::intptr_t result = raw::mremap(from, old_length, new_length, flags, target);
    if (raw::failed(result)) pager().unmap(target, new_length);
    return result;
  });
}

// Of the same size: whatever is mapped moves, and a hole leaves what is there in the target.
std::intptr_t move_in(const Request& request) {
  if (!is_mapped(request.address)) return -EFAULT;
  for (std::size_t at = 0; at < request.old_length;) {
    std::size_t end = at;
    while (end < request.old_length && is_mapped(request.address + end)) end += kPageSize;
    if (end > at) {
      std::intptr_t moved = hand_over(request.address + at, end - at, end - at, request.flags, request.target + at);
      if (raw::failed(moved)) return moved;
    }
    at = std::max(end, at + kPageSize);
  }
  return static_cast<std::intptr_t>(request.target);
}

// Of another size: first to its new size outside the window, which may be refused and then has changed nothing.
std::intptr_t resize_and_move_in(const Request& request) {
  if (request.old_length > request.new_length) {
    if (!is_mapped(request.address)) return -EFAULT;
    if (int error = raw::munmap(request.address + request.new_length, request.old_length - request.new_length);
        error != 0)
      return error;
    return hand_over(request.address, request.new_length, request.new_length, request.flags, request.target);
  }
  std::intptr_t grown = raw::mremap(request.address, request.old_length, request.new_length, MREMAP_MAYMOVE, 0);
  if (raw::failed(grown)) return grown;
  return hand_over(static_cast<std::uintptr_t>(grown), request.new_length, request.new_length, request.flags,
                   request.target);
}

std::intptr_t into_window(const Request& request) {
  if (!valid(request)) return -EINVAL;
  std::intptr_t result = request.old_length == request.new_length ? move_in(request) : resize_and_move_in(request);
  if (!raw::failed(result) && (request.flags & MREMAP_DONTUNMAP) == 0 && request.old_length != 0)
    left_local::remove(request.address, request.old_length);
  return result;
}

}  // namespace

std::intptr_t remap(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                    std::uintptr_t new_address) {
  if (new_length > old_length && page_ceil(new_length) >= new_length &&
      !limits::allow(page_ceil(new_length - old_length), true))
    return -ENOMEM;
  const bool to_fixed = (flags & MREMAP_FIXED) != 0;
  const bool target_touches = to_fixed && pager().overlaps(new_address, new_length == 0 ? 1 : new_length);
  if (pager().contains(address)) {
    const bool reaches_out = page_ceil(old_length) >= old_length && page_ceil(old_length) <= kUserBytes &&
                             page_ceil(old_length) > pager().window_base() + pager().window_bytes() - address;
    if (reaches_out) return -EFAULT;  // one mapping never crosses the edge
    return uninterrupted([=] {
      if (!to_fixed || target_touches) return pager().remap(address, old_length, new_length, flags, new_address);
      return pager().move_out(address, old_length, new_length, flags, new_address, left_local::add);
    });
  }
  const std::size_t least = old_length == 0 ? 1 : old_length;
  const bool reaches_in = page_floor(address) == address && page_ceil(least) >= least &&
                          page_ceil(least) <= kUserBytes && pager().overlaps(address, least);
  if (reaches_in) return -EFAULT;  // one mapping never crosses the edge
  if (target_touches) return into_window({address, page_ceil(old_length), page_ceil(new_length), flags, new_address});
  std::intptr_t result = raw::mremap(address, old_length, new_length, flags, new_address);
  if (!raw::failed(result) && old_length != 0)
    left_local::moved(address, old_length, static_cast<std::uintptr_t>(result), new_length);
  return result;
}

}  // namespace hinterland::mappings
