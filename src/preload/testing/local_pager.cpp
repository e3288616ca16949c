// A pager that does not page: class Pager's contract over plain mappings in a reserved window, so that the
// interposers can be tested for real without userfaultfd. Strict where the real one is lax: what is decommitted
// cannot be touched.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/mutex.hpp"
#include "base/raw_call.hpp"
#include "base/units.hpp"
#include "paging/bus_signal.hpp"
#include "paging/page/address_set.hpp"
#include "paging/pager.hpp"
#include "preload/raw.hpp"
#include "preload/testing/local_pager.hpp"

namespace hinterland {
namespace {

constexpr std::size_t kWindowBytes = 64 * kGiB;
constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

using Ranges = std::map<std::uintptr_t, std::uintptr_t>;  // start -> end: used addresses, adjacent ones joined

}  // namespace

struct Pager::Impl {
  Mutex mutex;
  Ranges used;
  AddressSet outside;
  std::uint64_t budget = 0;

  void add(std::uintptr_t start, std::uintptr_t end) {
    auto at = used.upper_bound(start);
    if (at != used.begin() && std::prev(at)->second >= start) --at;
    while (at != used.end() && at->first <= end) {
      start = std::min(start, at->first);
      end = std::max(end, at->second);
      at = used.erase(at);
    }
    used.emplace(start, end);
  }
  void remove(std::uintptr_t start, std::uintptr_t end) {
    auto at = used.upper_bound(start);
    if (at != used.begin() && std::prev(at)->second > start) --at;
    while (at != used.end() && at->first < end) {
      auto [first, last] = *at;
      at = used.erase(at);
      if (first < start) used.emplace(first, start);
      if (last > end) used.emplace(end, last);
    }
  }
  // The kernel gets addresses outside of the window back, and only those are in the set.
  void release(std::uintptr_t address, std::size_t length) {
    if (!outside.contains(address)) return;
    outside.remove(address, length);
    raw::munmap(address, length);
  }
  bool any(std::uintptr_t start, std::uintptr_t end) const {
    auto at = used.lower_bound(end);
    return at != used.begin() && std::prev(at)->second > start;
  }
  // Bytes from `start` that are used without a gap, at most up to `end`.
  std::size_t prefix(std::uintptr_t start, std::uintptr_t end) const {
    auto at = used.upper_bound(start);
    if (at == used.begin()) return 0;
    --at;
    if (at->second <= start) return 0;
    return std::min(at->second, end) - start;
  }
  std::uintptr_t find(std::uintptr_t base, std::size_t window, std::size_t length, std::size_t alignment) const {
    std::uintptr_t at = (base + alignment - 1) & ~(alignment - 1);
    for (auto [start, end] : used) {
      if (at + length <= start) break;
      at = std::max(at, (end + alignment - 1) & ~(alignment - 1));
    }
    return at + length <= base + window ? at : 0;
  }
};

namespace {
Pager* g_pager = nullptr;
}

// The friend through which Pager's members can be set.
class PagerParts {
 public:
  static Result<Pager*> start(std::uint64_t budget_bytes) {
    // With free addresses on both sides, for tests of ranges that cross its edges.
    constexpr std::size_t kBeside = 16 * kMiB;
    std::intptr_t got = raw::mmap(0, kWindowBytes + 2 * kBeside, PROT_NONE, kReserve);
    if (raw::failed(got)) return std::unexpected(Error::make(static_cast<int>(-got), "cannot reserve the window"));
    auto* made = new Pager;
    made->base_ = static_cast<std::uintptr_t>(got) + kBeside;
    raw::munmap(made->base_ - kBeside, kBeside);
    raw::munmap(made->base_ + kWindowBytes, kBeside);
    made->bytes_ = kWindowBytes;
    made->impl_ = new Pager::Impl;
    made->impl_->budget = budget_bytes;
    if (Status made_set = made->impl_->outside.create(); !made_set) return std::unexpected(made_set.error());
    g_pager = made;
    return made;
  }
};

Result<Pager*> start_local_pager(std::uint64_t budget_bytes) { return PagerParts::start(budget_bytes); }

Pager* Pager::current() { return g_pager; }

// Nothing is far here.
bool Pager::has_room_for(std::size_t bytes) const {
  struct sysinfo info{};
  return raw::checked(SYS_sysinfo, &info) != 0 ||
         bytes <= (static_cast<std::uint64_t>(info.totalram) + info.totalswap) * info.mem_unit;
}

std::intptr_t Pager::map(std::size_t length, std::size_t alignment, int protection, int flags, std::size_t,
                         MappedAs) {
  LockGuard guard(impl_->mutex);
  length = page_ceil(length);
  std::uintptr_t address = impl_->find(base_, bytes_, length, std::max(alignment, kPageSize));
  if (address == 0) return -ENOMEM;
  std::intptr_t result = raw::mmap(address, length, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags);
  if (!raw::failed(result)) impl_->add(address, address + length);
  return result;
}

std::intptr_t Pager::map_at(std::uintptr_t address, std::size_t length, int protection, int flags, bool no_replace) {
  LockGuard guard(impl_->mutex);
  if (no_replace && impl_->any(address, address + length)) return -EEXIST;
  std::intptr_t result = raw::mmap(address, length, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags);
  if (!raw::failed(result)) impl_->add(address, address + length);
  return result;
}

std::intptr_t Pager::take_in(std::uintptr_t address, std::size_t length, int protection, int flags) {
  LockGuard guard(impl_->mutex);
  if (overlaps_window(address, length)) return -ENOSPC;
  std::intptr_t result = raw::mmap(address, length, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags);
  if (raw::failed(result)) return result;
  impl_->add(address, address + page_ceil(length));
  impl_->outside.add(address, page_ceil(length));
  return result;
}

bool Pager::holds_outside(std::uintptr_t address) const { return impl_->outside.contains(address); }
bool Pager::overlaps_outside(std::uintptr_t address, std::size_t length) const {
  return impl_->outside.overlaps(address, length);
}
std::uintptr_t Pager::end_of_piece(std::uintptr_t address, std::uintptr_t end) const {
  if (in_window(address)) return std::min(end, base_ + bytes_);
  if (address < base_ && base_ < end) end = base_;
  return impl_->outside.end_of_piece(address, end);
}
bool Pager::covers_all_addresses() const { return true; }
std::size_t Pager::outside_bytes() const { return impl_->outside.bytes(); }

int Pager::surrender(std::uintptr_t address, std::size_t length) {
  LockGuard guard(impl_->mutex);
  if (in_window(address)) {
    impl_->add(address, address + length);
    return 0;
  }
  raw::mmap(address, length, PROT_NONE, kReserve | MAP_FIXED);
  impl_->remove(address, address + length);
  impl_->outside.remove(address, length);
  return 0;
}

int Pager::unmap(std::uintptr_t address, std::size_t length) {
  LockGuard guard(impl_->mutex);
  std::intptr_t result = raw::mmap(address, page_ceil(length), PROT_NONE, kReserve | MAP_FIXED);
  if (raw::failed(result)) return static_cast<int>(result);
  impl_->remove(address, address + page_ceil(length));
  impl_->release(address, page_ceil(length));
  return 0;
}

int Pager::protect(std::uintptr_t address, std::size_t length, int protection) {
  LockGuard guard(impl_->mutex);
  std::size_t there = impl_->prefix(address, address + length);
  if (int result = there != 0 ? raw::mprotect(address, there, protection) : 0; result != 0) return result;
  return there == length ? 0 : -ENOMEM;
}

std::intptr_t Pager::remap(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                           std::uintptr_t new_address) {
  LockGuard guard(impl_->mutex);
  old_length = page_ceil(old_length);
  const std::size_t length = page_ceil(new_length);
  const bool fixed = (flags & MREMAP_FIXED) != 0, keep = (flags & MREMAP_DONTUNMAP) != 0;
  bool valid = page_floor(address) == address && length != 0 && (!(fixed || keep) || (flags & MREMAP_MAYMOVE) != 0) &&
               (flags & ~(MREMAP_FIXED | MREMAP_MAYMOVE | MREMAP_DONTUNMAP)) == 0 && (!keep || old_length == length);
  bool overlap = fixed && new_address < address + old_length && address < new_address + length;
  if (!valid || overlap || (fixed && page_floor(new_address) != new_address)) return -EINVAL;
  if (impl_->prefix(address, address + kPageSize) == 0) return -EFAULT;
  if (old_length == 0) return -EINVAL;  // only shared mappings can be doubled
  // The kernel shrinks by unmapping the rest, holes or not; anything else needs one mapping.
  const bool shrinks = !fixed && !keep && length <= old_length;
  if (impl_->prefix(address, address + old_length) < (shrinks ? kPageSize : old_length)) return -EFAULT;
  if (shrinks) {
    if (length == old_length) return static_cast<std::intptr_t>(address);
    raw::mmap(address + length, old_length - length, PROT_NONE, kReserve | MAP_FIXED);
    impl_->remove(address + length, address + old_length);
    impl_->release(address + length, old_length - length);
    return static_cast<std::intptr_t>(address);
  }
  bool in_place =
      !fixed && !keep && !impl_->any(address + old_length, address + length) && in_window(address + length - 1);
  if (in_place) {
    raw::munmap(address + old_length, length - old_length);
    std::intptr_t grown = raw::mremap(address, old_length, length, 0, 0);
    if (!raw::failed(grown)) impl_->add(address, address + length);
    if (raw::failed(grown)) raw::mmap(address + old_length, length - old_length, PROT_NONE, kReserve | MAP_FIXED);
    return grown;
  }
  if ((flags & MREMAP_MAYMOVE) == 0) return -ENOMEM;
  std::uintptr_t target = fixed ? new_address : impl_->find(base_, bytes_, length, kPageSize);
  if (target == 0) return -ENOMEM;
  std::intptr_t moved = raw::mremap(address, old_length, length, flags | MREMAP_FIXED, target);
  if (raw::failed(moved)) return moved;
  impl_->add(target, target + length);
  if (!in_window(target)) impl_->outside.add(target, length);
  if (keep) return moved;
  raw::mmap(address, old_length, PROT_NONE, kReserve | MAP_FIXED);
  impl_->remove(address, address + old_length);
  impl_->release(address, old_length);
  return moved;
}

bool Pager::move_contents(std::uintptr_t from, std::uintptr_t to, std::size_t length) {
  LockGuard guard(impl_->mutex);
  constexpr int kFlags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  return !raw::failed(raw::mremap(from, length, length, kFlags, to));
}

std::intptr_t Pager::move_out(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                              std::uintptr_t new_address, void (*came)(std::uintptr_t, std::size_t)) {
  LockGuard guard(impl_->mutex);
  old_length = page_ceil(old_length);
  new_length = page_ceil(new_length);
  const std::size_t source = std::max(old_length, kPageSize);
  if (page_floor(address) == address && impl_->prefix(address, address + source) == 0) return -EFAULT;
  std::intptr_t moved = raw::mremap(address, old_length, new_length, flags, new_address);
  if (raw::failed(moved)) return moved;
  impl_->remove(new_address, new_address + new_length);
  impl_->outside.remove(new_address, new_length);
  came(new_address, new_length);
  if ((flags & MREMAP_DONTUNMAP) != 0 || old_length == 0) return moved;
  raw::mmap(address, old_length, PROT_NONE, kReserve | MAP_FIXED);
  impl_->remove(address, address + old_length);
  impl_->release(address, old_length);
  return moved;
}

int Pager::advise(std::uintptr_t address, std::size_t length, int advice) {
  LockGuard guard(impl_->mutex);
  bool holes = false;
  for (std::uintptr_t at = address, end = address + page_ceil(length); at < end;) {
    std::size_t there = impl_->prefix(at, end);
    if (there == 0) {
      holes = true;
      auto next = impl_->used.upper_bound(at);
      at = next == impl_->used.end() ? end : std::min(end, next->first);
      continue;
    }
    if (int result = raw::madvise(at, there, advice); result != 0) return result;
    at += there;
  }
  return holes ? -ENOMEM : 0;
}

int Pager::core(std::uintptr_t address, std::size_t length, unsigned char* vector) {
  LockGuard guard(impl_->mutex);
  std::size_t there = impl_->prefix(address, address + page_ceil(length));
  int result = there == 0 ? 0 : raw::mincore(address, there, vector);
  return result == 0 && there < page_ceil(length) ? -ENOMEM : result;
}

int Pager::sync(std::uintptr_t address, std::size_t length, int flags) {
  LockGuard guard(impl_->mutex);
  std::size_t there = impl_->prefix(address, address + length);
  int result =
      there == 0
          ? 0
          : static_cast<int>(raw::call(SYS_msync, static_cast<long>(address), static_cast<long>(there), flags));
  return result == 0 && there != length ? -ENOMEM : result;
}

int Pager::lock(std::uintptr_t address, std::size_t length, int flags) {
  LockGuard guard(impl_->mutex);
  if (impl_->prefix(address, address + length) != length) return -ENOMEM;
  return static_cast<int>(raw::call(SYS_mlock2, static_cast<long>(address), static_cast<long>(length), flags));
}
int Pager::unlock(std::uintptr_t address, std::size_t length) {
  LockGuard guard(impl_->mutex);
  if (impl_->prefix(address, address + length) != length) return -ENOMEM;
  return static_cast<int>(raw::call(SYS_munlock, static_cast<long>(address), static_cast<long>(length)));
}
int Pager::lock_all(int flags) { return static_cast<int>(raw::call(SYS_mlockall, flags | MCL_ONFAULT)); }
int Pager::unlock_all() { return static_cast<int>(raw::call(SYS_munlockall)); }

void Pager::decommit(std::uintptr_t address, std::size_t length) {
  if (raw::madvise(address, length, MADV_DONTNEED) != 0 && raw::madvise(address, length, MADV_DONTNEED_LOCKED) != 0)
    std::memset(reinterpret_cast<void*>(address), 0, length);
  raw::mprotect(address, length, PROT_NONE);
}

void Pager::make_plain(std::uintptr_t address, std::size_t length) {
  static_cast<void>(map_at(address, length, PROT_READ | PROT_WRITE, MAP_NORESERVE, false));
}

void Pager::commit(std::uintptr_t address, std::size_t length) {
  raw::mprotect(address, length, PROT_READ | PROT_WRITE);
}
void Pager::commit_uncleared(std::uintptr_t address, std::size_t length) { commit(address, length); }

void Pager::hold(std::uintptr_t, std::size_t) {}
void Pager::let_go(std::uintptr_t, std::size_t) {}

void Pager::leave_device() {}
void Pager::stay_on_device() {}

int Pager::before_fork() {
  impl_->mutex.lock();
  return 0;
}
void Pager::after_fork_in_parent(bool) { impl_->mutex.unlock(); }
void Pager::reserve_in_child() {}
void Pager::after_fork_in_child() { impl_->mutex.reset_after_fork(); }

int Pager::set_budget(std::uint64_t bytes) {
  if (bytes < kMinimumBudgetBytes) return -EINVAL;
  impl_->budget = bytes;
  return 0;
}
std::uint64_t Pager::budget_bytes() const { return impl_->budget; }
void Pager::thread_started(const volatile std::uint32_t*) {}
void Pager::thread_ended() {}

// --- signal mode: nothing faults here
bool Pager::faults_by_signal() const { return false; }
bool Pager::sees_pins() const { return true; }
bool Pager::hold_for_call(std::uintptr_t, std::size_t, bool) { return true; }
void Pager::let_go_after_call(std::uintptr_t, std::size_t) {}
bool bus_signal::installed() { return false; }
void bus_signal::before_fork() {}
void bus_signal::after_fork() {}
int bus_signal::change_action(const struct sigaction*, struct sigaction*) { return EINVAL; }
bool bus_signal::block(bool) { return false; }
bool bus_signal::is_blocked() { return false; }
std::uintptr_t bus_signal::faulting_instruction() { return 0; }

}  // namespace hinterland
