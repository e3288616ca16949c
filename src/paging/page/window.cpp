// Address-ordered first fit over a map of free ranges: reuses low addresses, so the page arrays stay dense.
#include "paging/page/window.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/space_limit.hpp"
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
    window.origin_ = window.base_;
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

Status Window::cover_all_addresses() {
  // What the tables of the pager will reserve, and some more: whether they can is found out before one of them is
  // made.
  constexpr std::size_t kTables = 512 * kGiB;
  void* trial = raw_mmap(nullptr, kTables, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  if (trial == MAP_FAILED)
    return std::unexpected(Error::make(errno, "cannot reserve %zu GiB of address space for tables", kTables / kGiB)
                               .remedy("raise %s, or give --addresses window", limit_on_space()));
  raw_munmap(trial, kTables);
  if (Status status = outside_.create(); !status) return status;
  if (Status status = ever_outside_.create(); !status) return status;
  origin_ = 0;
  return {};
}

namespace {

// Whole groups of pages, and what is read ahead beyond a mapping's ends.
constexpr std::size_t kMargin = 2 * kMiB;
struct Around {
  std::uintptr_t start, end;
};
Around around(std::uintptr_t address, std::size_t length) {
  const std::uintptr_t end = std::min(address + length + kMargin, AddressSet::kEnd);
  return {address < kMargin ? 0 : (address - kMargin) & ~(kMargin - 1), end};
}

}  // namespace

bool Window::allows(std::uintptr_t address, std::size_t length) const {
  if (!covers_all_addresses() || length > AddressSet::kEnd || address > AddressSet::kEnd - length) return false;
  if (address <= base_ + bytes_ && base_ <= address + length) return false;
  const Around range = around(address, length);
  std::size_t more = 0;
  for (std::uintptr_t at = range.start, next = 0; at < range.end; at = next) {
    next = ever_outside_.end_of_piece(at, range.end);
    if (!ever_outside_.contains(at)) more += next - at;
  }
  const std::size_t room = bytes_of_pages(used_most()), taken = bytes_ + ever_outside_.bytes();
  return taken < room && more <= room - taken;
}

void Window::put_outside(std::uintptr_t address, std::size_t length) {
  const Around range = around(address, length);
  ever_outside_.add(range.start, range.end - range.start);
  outside_.add(address, length);
}

std::uintptr_t Window::end_of_piece(std::uintptr_t address, std::uintptr_t end) const {
  if (contains(address, 1)) return std::min(end, base_ + bytes_);
  if (address < base_ && base_ < end) end = base_;
  return outside_.end_of_piece(address, end);
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
