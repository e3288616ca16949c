// Mappings, in the window and outside: map, unmap, protect, and the heap's commit and decommit.
//
// Order that keeps the page words true: a mapping goes away in the kernel first, then its words; movers that still
// work on a page find no mapping, clean up, and let go (fetcher.cpp, evictor.cpp). New mappings reuse addresses only
// when all words there are untouched again. So addresses stay reserved until then, outside of the window too, where
// the kernel gives them to anybody afterwards.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/raw_call.hpp"
#include "base/units.hpp"
#include "far/shared_memory.hpp"
#include "paging/page/reservation.hpp"
#include "paging/pager_impl.hpp"

namespace hinterland {
namespace {

constexpr int kBaseFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
// Flags of the caller that mean the same for a mapping of ours. MAP_POPULATE is a wish that the budget overrules.
constexpr int kKeptFlags = MAP_NORESERVE;
constexpr std::size_t kSmall = 64 * kMiB;  // fits into any machine

// Collects far pages, so that they are released many at a time.
class Releases {
 public:
  explicit Releases(far::Devices& devices) : devices_(devices) {}
  ~Releases() { flush(); }
  void add(far::FarPage page) {
    pages_[count_++] = page;
    if (count_ == pages_.size()) flush();
  }
  void flush() {
    if (count_ > 0) devices_.release(std::span(pages_.data(), count_));
    count_ = 0;
  }

 private:
  far::Devices& devices_;
  std::array<far::FarPage, 256> pages_;
  std::size_t count_ = 0;
};

// What drop() has locked, in as few ranges as it can be: not the groups between that nobody used, where a fault may
// put a page at any time (I1).
class LockedRanges {
 public:
  // Ascending. `present`: the kernel has something of it.
  void add(std::uintptr_t page, bool present) {
    if (count_ != 0 && end_ == page) {
      ranges_[count_ - 1].iov_len += kPageSize;
    } else {
      ranges_[count_++] = {reinterpret_cast<void*>(page), kPageSize};
    }
    end_ = page + kPageSize;
    present_ |= present;
  }
  bool empty() const { return !present_; }
  std::span<const iovec> ranges() const { return {ranges_.data(), count_}; }

 private:
  std::array<iovec, PageTable::kChunkPages / PageTable::kGroupPages> ranges_;
  std::size_t count_ = 0;
  std::uintptr_t end_ = 0;
  bool present_ = false;
};

// Gives memory back that only the kernel has; it reads as zeros afterwards. Locked memory, too (mlockall), which
// MADV_DONTNEED leaves as it is: the heap would hand out old bytes as zeros.
void clear_local(std::uintptr_t address, std::size_t length) {
  auto* memory = reinterpret_cast<void*>(address);
  if (raw_madvise(memory, length, MADV_DONTNEED) != 0 && raw_madvise(memory, length, MADV_DONTNEED_LOCKED) != 0)
    std::memset(memory, 0, length);  // before Linux 5.18
}

// What the kernel says of so much more locked memory (RLIMIT_MEMLOCK), before anything is replaced. 0 or -errno.
int try_locked(std::size_t length) {
  void* trial = raw_mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_LOCKED);
  if (trial == MAP_FAILED) return -errno;
  raw_munmap(trial, length);
  return 0;
}

}  // namespace

void Pager::Impl::forget(std::uintptr_t address, std::size_t length) {
  core.pinned.set(core.window.index_of(address), static_cast<std::uint32_t>(length >> kPageShift), false);
  core.marks.clear(core.window.index_of(address), static_cast<std::uint32_t>(length >> kPageShift));
  if (!core.managed.load()) return;
  std::uint64_t pages = 0;
  core.pages.for_each_used(core.window.index_of(address), static_cast<std::uint32_t>(length >> kPageShift),
                           [&](PageIndex page, PageCell& cell) {
                             PageWord word = cell.load();
                             if (!word.busy() && word.state() == PageState::untouched) return;
                             word = core.lock_waiting(page);
                             if (word.state() != PageState::untouched) ++pages;
                             core.transitions.forget(page, word);
                           });
  count(Counter::pages_discarded, pages);
}

// Drops the contents of pages that stay mapped. Chunk by chunk with the cells locked, so that a fault on one of them
// comes before or after, never in between.
void Pager::Impl::drop(std::uintptr_t address, std::size_t length) {
  constexpr std::size_t kStep = bytes_of_pages(PageTable::kChunkPages);
  std::array<PageIndex, PageTable::kChunkPages> locked;
  while (length > 0) {
    std::size_t step = std::min(length, kStep - (address & (kStep - 1)));
    std::size_t count_locked = 0;
    LockedRanges there;  // in the kernel's page tables: pages, or the marks of lost ones
    core.pages.for_each_used(core.window.index_of(address), static_cast<std::uint32_t>(step >> kPageShift),
                             [&](PageIndex page, PageCell&) {
                               PageWord word = core.lock_waiting(page);
                               there.add(core.address_of(page),
                                         word.state() == PageState::resident || word.state() == PageState::lost);
                               if (word.state() != PageState::untouched) count(Counter::pages_discarded);
                               core.transitions.dispose(page, word);
                               locked[count_locked++] = page;
                             });
    if (!there.empty()) core.kernel.discard(there.ranges());
    for (std::size_t i = 0; i < count_locked; ++i) core.transitions.none(locked[i], PageWord::untouched());
    address += step;
    length -= step;
  }
}

void* Pager::Impl::map_over(std::uintptr_t address, std::size_t length, int protection, int flags) {
  LockGuard no_taking(core.protection_mutex);
  return raw_mmap(reinterpret_cast<void*>(address), length, protection, flags);
}

bool Pager::Impl::empty_and_forbid(std::uintptr_t address, std::size_t length) {
  LockGuard no_taking(core.protection_mutex);
  void* const memory = reinterpret_cast<void*>(address);
  return raw_mprotect(memory, length, PROT_NONE) == 0 && raw_madvise(memory, length, MADV_DONTNEED) == 0;
}

// What far devices hold besides this machine's memory counts as swap does (ADR 0082).
bool Pager::Impl::has_room_for(std::size_t bytes) const {
  return bytes <= kSmall || bytes <= far::machine_memory_bytes() + core.devices.beyond_memory_bytes();
}

bool Pager::has_room_for(std::size_t bytes) const { return impl_->has_room_for(bytes); }

// The kernel alone grants one mapping no more than memory and swap (vm.overcommit_memory=0): when it is made, or when
// it may be written later.
int Pager::Impl::with_far_room(std::size_t length, int flags) const {
  const bool is_refused = length > kSmall && length > far::machine_memory_bytes();
  return is_refused && has_room_for(length) ? flags | MAP_NORESERVE : flags;
}

std::intptr_t Pager::Impl::place(std::uintptr_t address, std::size_t length, int protection, int flags,
                                 int attributes, MappedAs as) {
  flags = with_far_room(length, flags);
  if ((flags & MAP_LOCKED) != 0)
    if (int error = try_locked(length); error != 0) return error;
  void* mapped = map_over(address, length, protection, kBaseFlags | (flags & kKeptFlags));
  if (mapped == MAP_FAILED) return -errno;
  forget(address, length);
  Region region{address,
                address + length,
                protection,
                flags & kKeptFlags,
                false,
                attributes | attributes_of_new,
                as.kind == HL_MAPPING_HEAP};
  if (core.managed.load()) {
    int error = core.kernel.register_range(address, length);
    if (error == 0 && raw_madvise(mapped, length, MADV_DONTFORK) != 0) error = -errno;  // as keep_from_copies()
    if (error != 0) {
      if (is_inside(address))
        reserve_again(address, length);
      else
        map_over(address, length, protection, kBaseFlags | (flags & kKeptFlags));  // nobody's but the program's
      return error;
    }
  }
  occupy(address, length);
  std::size_t mapped_before = regions.mapped_bytes();
  if ((flags & MAP_LOCKED) != 0) region.attributes |= kLocked;
  regions.put(region);
  set_gauge(Gauge::mapped_bytes, regions.mapped_bytes());
  core.policy.mapped(run_of(address, length), as);
  if (region.attributes != 0) apply(region);
  // The budget comes within reach: somebody must watch from now on.
  std::uint64_t mark = takeover_mark();
  if (!core.managed.load() && regions.mapped_bytes() > mark / 2 && regions.mapped_bytes() > mapped_before)
    kick_housekeeper();
  return static_cast<std::intptr_t>(address);
}

void Pager::Impl::occupy(std::uintptr_t address, std::size_t length) {
  if (is_inside(address))
    core.window.occupy(address, length);
  else
    core.window.put_outside(address, length);
}

void Pager::Impl::release(std::uintptr_t address, std::size_t length) {
  if (is_inside(address)) return core.window.release(address, length);
  core.window.take_outside(address, length);
  raw_munmap(reinterpret_cast<void*>(address), length);
}

// Reserved address space of the window is advised as the rest of it, with which it then merges.
void Pager::Impl::alike_reserved(std::uintptr_t address, std::size_t length) {
  if (!is_inside(address)) return;
  raw_madvise(reinterpret_cast<void*>(address), length, MADV_DONTDUMP);
  if (core.managed.load()) raw_madvise(reinterpret_cast<void*>(address), length, MADV_DONTFORK);
}

int Pager::Impl::reserve_again(std::uintptr_t address, std::size_t length) {
  // After mlockall(MCL_FUTURE) the kernel locks a reservation, too, and counts it beside what it replaces.
  const bool locks = attributes_of_new != 0;
  if (locks) raw::checked(SYS_munlock, address, length);
  void* mapped = map_over(address, length, PROT_NONE, kBaseFlags | MAP_NORESERVE);
  // At the limit of mappings (vm.max_map_count) the kernel maps nothing, not even over what is there, and would yet
  // unmap it.
  if (mapped == MAP_FAILED) {
    const int error = errno;
    if (error != ENOMEM || !empty_and_forbid(address, length)) return -error;
  }
  if (locks) raw::checked(SYS_munlock, address, length);
  alike_reserved(address, length);
  return 0;
}

std::intptr_t Pager::map(std::size_t length, std::size_t alignment, int protection, int flags, std::size_t leave,
                         MappedAs as) {
  length = page_ceil(length);
  if (length == 0) return -ENOMEM;
  MapGuard guard(*impl_);
  const std::size_t inside = impl_->regions.mapped_bytes() - outside_bytes();
  const std::size_t free = bytes_ - std::min(bytes_, inside);
  if (leave != 0 && (free < leave || length > free - leave)) return -ENOMEM;
  std::uintptr_t address = impl_->core.window.allocate(length, std::max(alignment, kPageSize));
  if (address == 0) return -ENOMEM;
  std::intptr_t placed = impl_->place(address, length, protection, flags, 0, as);
  if (placed < 0) impl_->core.window.release(address, length);
  return placed;
}

std::intptr_t Pager::map_at(std::uintptr_t address, std::size_t length, int protection, int flags, bool no_replace) {
  length = page_ceil(length);
  MapGuard guard(*impl_);
  const Window& window = impl_->core.window;
  const bool inside = window.contains(address, length);
  if (!inside && (window.overlaps(address, length) != window.holds(address) || !window.holds(address)))
    return -ENOMEM;
  if (no_replace && !(inside && window.is_free(address, length))) return -EEXIST;
  return impl_->place(address, length, protection, flags);
}

std::intptr_t Pager::take_in(std::uintptr_t address, std::size_t length, int protection, int flags) {
  length = page_ceil(length);
  MapGuard guard(*impl_);
  if (!impl_->core.window.allows(address, length)) return -ENOSPC;
  return impl_->place(address, length, protection, flags);
}

int Pager::surrender(std::uintptr_t address, std::size_t length) {
  MapGuard guard(*impl_);
  return impl_->surrender(address, page_ceil(length));
}

int Pager::Impl::surrender(std::uintptr_t address, std::size_t length) {
  if (int error = reserve_again(address, length); error != 0) return error;
  forget(address, length);
  if (is_inside(address)) {
    core.window.occupy(address, length);
    regions.put({address, address + length, PROT_NONE, 0, true});
  } else {
    regions.remove(address, address + length);
    core.window.take_outside(address, length);
  }
  set_gauge(Gauge::mapped_bytes, regions.mapped_bytes());
  core.policy.unmapped(run_of(address, length));
  return 0;
}

int Pager::unmap(std::uintptr_t address, std::size_t length) {
  MapGuard guard(*impl_);
  return impl_->unmap(address, page_ceil(length));
}

int Pager::Impl::unmap(std::uintptr_t address, std::size_t length) {
  if (int error = reserve_again(address, length); error != 0) return error;
  regions.remove(address, address + length);
  forget(address, length);
  core.policy.unmapped(run_of(address, length));
  release(address, length);
  set_gauge(Gauge::mapped_bytes, regions.mapped_bytes());
  return 0;
}

// How much of the range is mapped without a hole from its start: system calls act on that much and then fail.
std::size_t Pager::Impl::covered_prefix(std::uintptr_t address, std::size_t length) const {
  std::uintptr_t reached = address;
  regions.for_each(address, address + length, [&](const Region& piece) {
    if (piece.start == reached) reached = piece.end;
  });
  return reached - address;
}

const std::vector<Region>& Pager::Impl::pieces(std::uintptr_t address, std::size_t length) {
  pieces_found.clear();
  regions.for_each(address, address + length, [this](const Region& piece) { pieces_found.push_back(piece); });
  return pieces_found;
}

int Pager::protect(std::uintptr_t address, std::size_t length, int protection) {
  length = page_ceil(length);
  MapGuard guard(*impl_);
  std::size_t covered = impl_->covered_prefix(address, length);
  if (covered == 0) return -ENOMEM;
  LockGuard no_taking(impl_->core.protection_mutex);
  if (raw_mprotect(reinterpret_cast<void*>(address), covered, protection) == 0) {
    impl_->regions.protect(address, address + covered, protection);
    return covered == length ? 0 : -ENOMEM;
  }
  // Refused half-way (a file that may not be written): once more piece by piece, to know how far it went.
  for (const Region& piece : impl_->pieces(address, covered)) {
    if (raw_mprotect(reinterpret_cast<void*>(piece.start), piece.length(), protection) != 0) return -errno;
    impl_->regions.protect(piece.start, piece.end, protection);
  }
  return covered == length ? 0 : -ENOMEM;
}

void Pager::make_plain(std::uintptr_t address, std::size_t length) {
  constexpr int kHeap = PROT_READ | PROT_WRITE;
  MapGuard guard(*impl_);
  const std::vector<Region> all = impl_->pieces(address, length);
  for (const Region& piece : all) {
    const bool plain = !piece.surrendered && (piece.attributes & ~impl_->attributes_of_new) == 0;
    // Without memory for a new mapping it stays as it is.
    if (!plain || piece.protection != kHeap)
      static_cast<void>(impl_->place(piece.start, piece.length(), kHeap, piece.flags, 0, {.kind = HL_MAPPING_HEAP}));
  }
}

void Pager::decommit(std::uintptr_t address, std::size_t length) {
  Core& core = impl_->core;
  impl_->refuse_copies();
  HeapCalls::Call call(impl_->heap_calls);
  if (!core.managed.load()) {
    // Under the lock, so that paging does not begin meanwhile and list pages that are about to go: commit() relies on
    // listed pages being there.
    MapGuard guard(*impl_);
    if (!core.managed.load()) {
      clear_local(address, length);
      return;
    }
  }
  impl_->let_go_of_freed(address, length);
  Releases releases(core.devices);
  std::uint64_t pages = 0;
  core.pages.for_each_used(core.window.index_of(address), static_cast<std::uint32_t>(length >> kPageShift),
                           [&](PageIndex page, PageCell& cell) {
                             if (PageWord word = cell.load(); !word.busy() && word.state() == PageState::untouched)
                               return;
                             PageWord word = core.lock_waiting(page);
                             ++pages;
                             if (word.state() != PageState::resident) {
                               // Freed, a lost page is whole again: the heap's next user must not get SIGBUS.
                               iovec range{core.memory_of(page), kPageSize};
                               if (word.state() == PageState::lost) core.kernel.discard({&range, 1});
                               core.transitions.forget(page, word);
                               return;
                             }
                             if (word.has_far()) releases.add(word.far_page());
                             core.transitions.discard_in_place(page, word);
                           });
  count(Counter::pages_discarded, pages);
}

void Pager::commit(std::uintptr_t address, std::size_t length) {
  Core& core = impl_->core;
  impl_->refuse_copies();
  if (!core.managed.load()) return;
  HeapCalls::Call call(impl_->heap_calls);
  core.pages.for_each_used(core.window.index_of(address), static_cast<std::uint32_t>(length >> kPageShift),
                           [&](PageIndex page, PageCell& cell) {
                             if (PageWord word = cell.load(); !word.busy() && !word.discardable()) return;
                             PageWord word = core.lock_waiting(page);
                             // Present, writable and not protected (decommit() saw to it): no fault here.
                             if (word.state() == PageState::resident && word.discardable())
                               std::memset(core.memory_of(page), 0, kPageSize);
                             core.transitions.reuse(page, word);
                           });
}

namespace {

// Freed pages side by side, which are locked until the policy is told of all of them at once.
class RenewedRun {
 public:
  explicit RenewedRun(Core& core) : core_(core) {}
  ~RenewedRun() { finish(); }
  RenewedRun(const RenewedRun&) = delete;
  RenewedRun& operator=(const RenewedRun&) = delete;

  void add(PageIndex page) {
    if (run_.count == kPagesMax || page != run_.end()) finish();
    PageWord word;
    if (run_.count == 0 || !core_.pages[page].try_lock(&word)) {
      finish();  // who waits for a page holds no other
      word = core_.lock_waiting(page);
    }
    if (!word.discardable()) return core_.transitions.none(page, word);
    if (run_.count == 0) run_.first = page;
    ++run_.count;
  }

 private:
  static constexpr std::uint32_t kPagesMax = 64;

  void finish() {
    if (run_.count != 0) core_.transitions.renew(run_);
    run_ = {};
  }

  Core& core_;
  PageRun run_{};
};

}  // namespace

void Pager::commit_uncleared(std::uintptr_t address, std::size_t length) {
  Core& core = impl_->core;
  impl_->refuse_copies();
  if (!core.managed.load()) return;
  HeapCalls::Call call(impl_->heap_calls);
  RenewedRun freed(core);
  core.pages.for_each_used(core.window.index_of(address), static_cast<std::uint32_t>(length >> kPageShift),
                           [&](PageIndex page, PageCell& cell) {
                             if (PageWord word = cell.load(); word.busy() || word.discardable()) freed.add(page);
                           });
}

}  // namespace hinterland
