// Address-ordered first fit over a map of free ranges: reuses low addresses, so the page arrays stay dense.
#include "paging/page/window.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/check.hpp"
#include "paging/page/reservation.hpp"

namespace hinterland {
namespace {

constexpr std::size_t kHugePage = 2 * kMiB;

std::uintptr_t align_up(std::uintptr_t address, std::size_t alignment) {
  return (address + alignment - 1) & ~(alignment - 1);
}

}  // namespace

Result<Window> Window::reserve(std::size_t bytes, std::size_t least_bytes) {
  for (; bytes >= least_bytes; bytes /= 2) {
    void* memory = raw_mmap(nullptr, bytes + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    if (memory == MAP_FAILED) continue;
    // The kernel would look at each page of it while it dumps core, once one mapping in it was written to.
    raw_madvise(memory, bytes + kHugePage, MADV_DONTDUMP);
    Window window;
    window.base_ = align_up(reinterpret_cast<std::uintptr_t>(memory), kHugePage);
    window.bytes_ = bytes;
    window.free_[window.base_] = window.base_ + bytes;
    return window;
  }
  return std::unexpected(Error::make(errno, "cannot reserve %zu MiB of address space", least_bytes / kMiB)
                             .remedy("raise the limit on address space: ulimit -v unlimited"));
}

std::uintptr_t Window::allocate(std::size_t length, std::size_t alignment) {
  if (length >= kHugePage) alignment = std::max(alignment, kHugePage);
  for (const auto& [start, end] : free_) {
    std::uintptr_t at = align_up(start, alignment);
    if (at < start || at >= end || end - at < length) continue;
    occupy(at, length);
    return at;
  }
  return 0;
}

void Window::occupy(std::uintptr_t address, std::size_t length) {
  std::uintptr_t limit = address + length;
  auto at = free_.upper_bound(address);
  if (at != free_.begin()) --at;
  while (at != free_.end() && at->first < limit) {
    auto [start, end] = *at;
    if (end <= address) {
      ++at;
      continue;
    }
    at = free_.erase(at);
    if (start < address) free_[start] = address;
    if (end > limit) free_[limit] = end;
  }
}

bool Window::is_free(std::uintptr_t address, std::size_t length) const {
  auto at = free_.upper_bound(address);
  if (at == free_.begin()) return false;
  --at;
  return at->first <= address && address + length <= at->second;
}

void Window::release(std::uintptr_t address, std::size_t length) {
  occupy(address, length);  // parts that are free already are merged, not counted twice
  std::uintptr_t start = address, end = address + length;
  auto next = free_.lower_bound(address);
  if (next != free_.end() && next->first == end) {
    end = next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto before = std::prev(next);
    if (before->second == start) {
      before->second = end;
      return;
    }
  }
  free_[start] = end;
}

}  // namespace hinterland
