#include "object/local_log.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <new>

#include "base/check.hpp"
#include "base/raw_call.hpp"

namespace hinterland::object {
namespace {

// Of the sealed regions that come next, so many are compared: emptier ones cost less to empty, and a choice among all
// would forget that those filled long ago are the colder ones.
constexpr std::size_t kCompared = 16;

std::intptr_t map_memory(std::size_t bytes) {
  return raw::call(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

}  // namespace

Result<std::unique_ptr<LocalLog>> LocalLog::create(LocalMemory& memory, std::uint64_t arena_bytes,
                                                   std::uint64_t reserved_bytes) {
  std::unique_ptr<LocalLog> log(new LocalLog(memory));
  log->regions_count_ = arena_bytes / kRegionBytes;
  log->reserved_bytes_ = reserved_bytes;
  log->mapped_bytes_ = (log->regions_count_ + 1) * kRegionBytes;  // one more, to align
  const std::size_t table_bytes = page_ceil(log->regions_count_ * sizeof(Region));
  const std::intptr_t table = map_memory(table_bytes);
  const std::intptr_t arena = raw::failed(table) ? table : map_memory(log->mapped_bytes_);
  if (raw::failed(arena)) {
    if (!raw::failed(table)) raw::call(SYS_munmap, table, static_cast<long>(table_bytes));
    return std::unexpected(Error::make(static_cast<int>(-arena), "no addresses for far objects")
                               .remedy("raise the limit on them: ulimit -v"));
  }
  // A region that was never used is all zeros, which is how one begins.
  log->regions_ = reinterpret_cast<Region*>(table);
  log->mapped_ = reinterpret_cast<void*>(arena);
  log->base_ = (static_cast<std::uintptr_t>(arena) + kRegionBytes - 1) & ~(kRegionBytes - 1);
  log->unused_.emplace(0, log->regions_count_);
  return log;
}

LocalLog::~LocalLog() {
  if (mapped_ == nullptr) return;
  raw::call(SYS_munmap, raw::word_of(mapped_), static_cast<long>(mapped_bytes_));
  raw::call(SYS_munmap, raw::word_of(regions_), static_cast<long>(page_ceil(regions_count_ * sizeof(Region))));
}

std::uint64_t LocalLog::regions_left() const {
  const std::uint64_t had = memory_.limit() + free_count_.load(std::memory_order_relaxed) * kRegionBytes;
  const std::uint64_t gone = memory_.used() + reserved_bytes_;
  return had > gone ? (had - gone) / kRegionBytes : 0;
}

Region* LocalLog::take_addresses_locked(std::uint64_t count) {
  for (auto at = unused_.begin(); at != unused_.end(); ++at) {
    auto [first, length] = *at;
    if (length < count) continue;
    unused_.erase(at);
    if (length > count) unused_.emplace(first + count, length - count);
    return &regions_[first];
  }
  return nullptr;
}

void LocalLog::give_addresses_locked(std::uint64_t first, std::uint64_t count) {
  auto after = unused_.lower_bound(first);
  if (after != unused_.end() && first + count == after->first) {
    count += after->second;
    after = unused_.erase(after);
  }
  if (after != unused_.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == first) {
      before->second += count;
      return;
    }
  }
  unused_.emplace_hint(after, first, count);
}

bool LocalLog::pay(For purpose, std::uint64_t bytes) {
  if (purpose == For::beyond) {
    memory_.charge_beyond(bytes);
    return true;
  }
  const std::uint64_t kept = purpose == For::program ? reserved_bytes_ : 0;
  if (memory_.left() + free_count_.load(std::memory_order_relaxed) * kRegionBytes < bytes + kept) return false;
  return memory_.charge(bytes);
}

// One that was sealed before it was half full, and is nobody's: filled further, so that sealing costs no memory.
Region* LocalLog::reopen_locked(bool nontemporal) {
  std::deque<Queued>& queue = sealed_[nontemporal ? 1 : 0];
  for (std::size_t i = queue.size(), end = i - std::min(i, kCompared); i-- > end;) {
    Region& region = *queue[i].region;
    if (region.span_bytes != 0 || region.end > kRegionBytes / 2) continue;
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(i));
    region.left_bytes = Region::kAll;
    region.state.store(Region::State::open, std::memory_order_relaxed);
    return &region;
  }
  return nullptr;
}

Region* LocalLog::take(For purpose, bool nontemporal) {
  LockGuard guard(mutex_);
  Region* region = reopen_locked(nontemporal);
  if (region != nullptr) return region;
  const std::uint64_t kept = purpose == For::program ? reserved_bytes_ / kRegionBytes : 0;
  if (free_.size() + memory_.left() / kRegionBytes > kept && !free_.empty()) {
    region = free_.back();
    free_.pop_back();
    free_count_.store(free_.size(), std::memory_order_relaxed);
  } else if (pay(purpose, kRegionBytes)) {
    region = take_addresses_locked(1);
    if (region == nullptr) memory_.give_back(kRegionBytes);
  }
  if (region == nullptr) return nullptr;
  region->nontemporal = nontemporal;
  region->end = 0;
  region->span_bytes = 0;
  region->live_bytes.store(0, std::memory_order_relaxed);
  region->left_bytes = Region::kAll;
  region->state.store(Region::State::open, std::memory_order_relaxed);
  return region;
}

Header* LocalLog::place(Lane& lane, const Need& need, For purpose) {
  LockGuard guard(lane.mutex);
  for (;;) {
    if (lane.region != nullptr) {
      Region& region = *lane.region;
      std::byte* begin = begin_of(region);
      const std::size_t object = (region.end + sizeof(Header) + need.alignment - 1) & ~(need.alignment - 1);
      const std::size_t at = object - sizeof(Header), end = at + need.units * kUnit;
      if (end <= kRegionBytes) {
        if (at != region.end)  // what alignment leaves over is a dead object
          reinterpret_cast<Header*>(begin + region.end)->set((at - region.end) / kUnit, 0, 0);
        auto* header = reinterpret_cast<Header*>(begin + at);
        header->set(need.units, 0, Header::kMaking);
        region.end = static_cast<std::uint32_t>(end);
        region.live_bytes.fetch_add(need.units * kUnit, std::memory_order_relaxed);
        return header;
      }
      LockGuard queue(mutex_);
      seal_locked(region);
      lane.region = nullptr;
    }
    lane.region = take(purpose, lane.nontemporal);
    if (lane.region == nullptr) return nullptr;
  }
}

Header* LocalLog::place_span(std::size_t bytes, std::size_t alignment, bool nontemporal, For purpose) {
  // A region begins on a page, so that this aligns whatever a page does.
  const std::size_t object = std::max(alignment, sizeof(Header));
  const std::uint64_t whole = page_ceil(object + bytes), count = (whole + kRegionBytes - 1) / kRegionBytes;
  LockGuard guard(mutex_);
  if (!pay(purpose, whole)) return nullptr;
  Region* region = take_addresses_locked(count);
  if (region == nullptr) {
    memory_.give_back(whole);
    return nullptr;
  }
  region->nontemporal = nontemporal;
  region->end = static_cast<std::uint32_t>(object);
  region->span_bytes = bytes + sizeof(Header);
  region->live_bytes.store(region->span_bytes, std::memory_order_relaxed);
  region->left_bytes = Region::kAll;
  auto* header = reinterpret_cast<Header*>(begin_of(*region) + object - sizeof(Header));
  header->set(0, 0, Header::kMaking);
  seal_locked(*region);
  return header;
}

void LocalLog::seal_locked(Region& region) {
  region.state.store(Region::State::sealed, std::memory_order_relaxed);
  sealed_[region.nontemporal ? 1 : 0].push_back({&region, region.stamp});
}

void LocalLog::seal(Lane& lane) {
  LockGuard guard(lane.mutex);
  if (lane.region == nullptr || lane.region->end == 0) return;
  LockGuard queue(mutex_);
  seal_locked(*lane.region);
  lane.region = nullptr;
}

namespace {

// The part that lives. What an evacuator has left there stays until its turn comes again, however little it is: it
// would be chosen, in vain, again and again.
double fullness_of(const Region& region) {
  const std::uint64_t live = region.live_bytes.load(std::memory_order_relaxed);
  if (live >= region.left_bytes) return 1;
  return static_cast<double>(live) / static_cast<double>(region.span_bytes != 0 ? region.span_bytes : kRegionBytes);
}

}  // namespace

Region* LocalLog::claim_from_locked(std::deque<Queued>& queue) {
  // relaxed: what is pinned after this look is seen by the evacuator's own.
  const auto is_pinned = [&](std::size_t i) { return queue[i].region->pins.load(std::memory_order_relaxed) != 0; };
  for (std::size_t passed = 0; passed < queue.size() && is_pinned(0); ++passed) {
    queue.push_back(queue.front());
    queue.pop_front();
  }
  std::size_t best = queue.size();
  double least = 2;
  for (std::size_t i = 0; i < std::min(queue.size(), kCompared); ++i) {
    if (is_pinned(i)) continue;
    const Region& region = *queue[i].region;
    const double full = fullness_of(region);
    // Somewhat emptier is no reason to leave the order of filling.
    if (full < least - 0.25) best = i, least = full;
  }
  if (best == queue.size()) return nullptr;
  Region* region = queue[best].region;
  HL_DCHECK(region->stamp == queue[best].stamp);
  queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(best));
  region->state.store(Region::State::claimed, std::memory_order_relaxed);
  return region;
}

Region* LocalLog::claim() {
  LockGuard guard(mutex_);
  Region* region = claim_from_locked(sealed_[1]);
  return region != nullptr ? region : claim_from_locked(sealed_[0]);
}

void LocalLog::drop_memory(Region& region, std::uint64_t bytes) {
  // Raw: the preloaded library has a madvise() of its own, for the program's memory.
  raw::call(SYS_madvise, raw::word_of(begin_of(region)), static_cast<long>(page_ceil(bytes)), MADV_DONTNEED);
}

void LocalLog::shed() {
  LockGuard guard(mutex_);
  while (!free_.empty() && memory_.used() > memory_.limit()) {
    Region& region = *free_.back();
    free_.pop_back();
    drop_memory(region, kRegionBytes);
    memory_.give_back(kRegionBytes);
    give_addresses_locked(static_cast<std::uint64_t>(&region - regions_), 1);
  }
  free_count_.store(free_.size(), std::memory_order_relaxed);
}

void LocalLog::let_go(Region& region, Left left) {
  if (left == Left::orphans) return;
  if (left == Left::some) {
    LockGuard guard(mutex_);
    region.left_bytes = region.live_bytes.load(std::memory_order_relaxed);
    seal_locked(region);
    return;
  }
  const bool span = region.span_bytes != 0;
  // Kept with its memory for the next, which is cheaper than asking the kernel for zeroed pages; but not beyond the
  // limit.
  const bool keep = !span && memory_.used() <= memory_.limit();
  const std::uint64_t bytes = span ? page_ceil(region.end + region.span_bytes - sizeof(Header)) : kRegionBytes;
  if (!keep) drop_memory(region, bytes);
  LockGuard guard(mutex_);
  ++region.stamp;
  region.state.store(Region::State::free, std::memory_order_relaxed);
  if (keep) {
    free_.push_back(&region);
    free_count_.store(free_.size(), std::memory_order_relaxed);
    return;
  }
  region.span_bytes = 0;
  memory_.give_back(bytes);
  give_addresses_locked(static_cast<std::uint64_t>(&region - regions_), (bytes + kRegionBytes - 1) / kRegionBytes);
}

}  // namespace hinterland::object
