#include "trace/allocation_log.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "base/clock.hpp"
#include "base/raw_call.hpp"
#include "trace/callers.hpp"
#include "trace/ring.hpp"
#include "trace/ring_observer.hpp"

namespace hinterland::trace::allocation_log {
namespace {

// One in a cache line's worth of places for each hash: as much as a look may cost.
struct Bucket {
  static constexpr std::size_t kPlaces = 8;
  static constexpr std::uint64_t kBusy = 1;                 // being written
  std::array<std::atomic<std::uint64_t>, kPlaces> address;  // 0: free. release, after the event
  std::array<AllocationEvent, kPlaces> events;
};
constexpr std::size_t kBuckets = RingFile::kAllocationRoom / Bucket::kPlaces;

std::atomic<Bucket*> g_table{nullptr};
std::atomic<std::uint64_t> g_lost{0};  // found no place; told with the next ring
thread_local std::uint64_t t_random = 0;

// xorshift64*: independent of what the program does.
std::uint64_t next_random() {
  if (t_random == 0) t_random = (now_ns() ^ reinterpret_cast<std::uintptr_t>(&t_random)) | 1;
  t_random ^= t_random >> 12;
  t_random ^= t_random << 25;
  t_random ^= t_random >> 27;
  return t_random * 0x2545f4914f6cdd1d >> 32;
}

Bucket* bucket_of(std::uintptr_t address) {
  Bucket* table = g_table.load(std::memory_order_acquire);  // pairs with begin()
  return table != nullptr ? &table[(address >> 4) * 0x9e3779b97f4a7c15 >> 32 & (kBuckets - 1)] : nullptr;
}
static_assert((kBuckets & (kBuckets - 1)) == 0);

bool keep(const AllocationEvent& event) {
  Bucket* bucket = bucket_of(event.address);
  if (bucket == nullptr) return false;
  for (std::size_t i = 0; i < Bucket::kPlaces; ++i) {
    std::uint64_t free = 0;
    if (!bucket->address[i].compare_exchange_strong(free, Bucket::kBusy, std::memory_order_acquire)) continue;
    bucket->events[i] = event;
    bucket->address[i].store(event.address, std::memory_order_release);  // pairs with who looks for it
    return true;
  }
  return false;
}

// Without callers.
AllocationEvent event_of(AllocationKind kind, std::uintptr_t address, std::size_t bytes, std::uint64_t time_ns) {
  AllocationEvent event{};
  event.time_ns = time_ns;
  event.address = address;
  event.bytes = event.stands_for = bytes;
  event.kind = kind;
  return event;
}

void tell(const AllocationEvent& event) {
  if (RingFile* ring = current_ring()) put(*ring, event);
}

// What is not in the table is not told of either: its end would not be noticed.
bool begin_life(AllocationEvent& event) {
  if (recording_is_over()) return false;
  find_callers(event.callers, AllocationEvent::kFrames);
  if (keep(event))
    tell(event);
  else if (RingFile* ring = current_ring())
    ring->allocations.lost.fetch_add(1, std::memory_order_relaxed);
  else
    g_lost.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace

// By a system call: mmap in the preloaded library is the program's.
bool begin() {
  constexpr std::size_t kBytes = kBuckets * sizeof(Bucket);
  if (Bucket* table = g_table.load(); table != nullptr) {  // of an earlier recording: what it says is out of date
    raw::checked(SYS_madvise, table, kBytes, MADV_DONTNEED);
    return true;
  }
  long memory = raw::checked(SYS_mmap, nullptr, kBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
  if (memory == -1) return false;
  g_table.store(reinterpret_cast<Bucket*>(memory), std::memory_order_release);
  return true;
}

std::uint64_t sampled(std::size_t bytes) {
  bool wanted = bytes >= kAllocationInterval || next_random() % kAllocationInterval < bytes;
  return wanted ? now_ns() : 0;
}

bool made(std::uintptr_t address, std::size_t asked, std::size_t bytes, std::uint64_t since_ns) {
  AllocationEvent event = event_of(AllocationKind::block, address, bytes, since_ns);
  if (asked < kAllocationInterval && asked != 0) event.stands_for = kAllocationInterval * bytes / asked;
  return begin_life(event);
}

std::uint64_t taken_out(std::uintptr_t address) {
  Bucket* bucket = bucket_of(address);
  if (bucket == nullptr) return 0;
  for (std::size_t i = 0; i < Bucket::kPlaces; ++i) {
    std::uint64_t found = address;
    if (bucket->address[i].load(std::memory_order_relaxed) != address) continue;
    // acquire pairs with keep(). Busy, so that the event is ours to read.
    if (!bucket->address[i].compare_exchange_strong(found, Bucket::kBusy, std::memory_order_acquire)) continue;
    std::uint64_t made_ns = bucket->events[i].time_ns;
    bucket->address[i].store(0, std::memory_order_release);
    return made_ns;
  }
  return 0;
}

void ended(std::uintptr_t address, std::uint64_t made_ns) {
  AllocationEvent event = event_of(AllocationKind::block_ended, address, 0, now_ns());
  event.made_ns = made_ns;
  tell(event);
}

bool mapped(std::uintptr_t address, std::size_t bytes, std::uint64_t since_ns) {
  taken_out(address);  // replaced, if it was there
  AllocationEvent event = event_of(AllocationKind::mapping, address, bytes, since_ns);
  return begin_life(event);
}

// Of a mapping that is unmapped in part, the table keeps what it had, unless its beginning goes: that is right once
// the ring is there, since the range itself is told.
void unmapped(std::uintptr_t address, std::size_t bytes, std::uint64_t since_ns) {
  taken_out(address);
  tell(event_of(AllocationKind::range_ended, address, bytes, since_ns));
}

void tell_all(RingFile& ring) {
  ring.allocations.lost.fetch_add(g_lost.exchange(0, std::memory_order_relaxed), std::memory_order_relaxed);
  Bucket* table = g_table.load(std::memory_order_acquire);
  for (std::size_t i = 0; table != nullptr && i < kBuckets * Bucket::kPlaces; ++i) {
    Bucket& bucket = table[i / Bucket::kPlaces];
    std::atomic<std::uint64_t>& address = bucket.address[i % Bucket::kPlaces];
    std::uint64_t before = address.load(std::memory_order_acquire);  // pairs with keep()
    if (before <= Bucket::kBusy) continue;
    AllocationEvent event = bucket.events[i % Bucket::kPlaces];
    // It may have ended while we copied, and its place may be another's.
    std::atomic_thread_fence(std::memory_order_acquire);
    if (address.load(std::memory_order_relaxed) == before) ring.allocations.put(event);
  }
}

}  // namespace hinterland::trace::allocation_log
