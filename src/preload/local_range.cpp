#include "preload/local_range.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/mutex.hpp"
#include "base/units.hpp"
#include "preload/raw.hpp"

namespace hinterland::local_range {

std::uintptr_t g_base = 0;
std::size_t g_bytes = 0;

namespace {

constexpr std::size_t kWanted = 1024 * kGiB;  // zmem: keeps its store here, so it must hold what far memory holds
constexpr std::size_t kLeast = 128 * kMiB;
constexpr std::size_t kHuge = 2 * kMiB;
constexpr int kReserveFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

Mutex g_reserve_mutex;
std::atomic<bool> g_reserved{false};
std::atomic<std::uintptr_t> g_next{0};  // first address not handed out

std::size_t wanted_bytes() {
  struct rlimit limit = {};
  raw::call(SYS_prlimit64, 0, RLIMIT_AS, 0, reinterpret_cast<long>(&limit));
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur == 0) return kWanted;
  // A program under `ulimit -v` needs the addresses itself.
  return std::clamp(std::size_t{limit.rlim_cur} / 8, kLeast, kWanted) & ~(kHuge - 1);
}

bool reserve() {
  LockGuard guard(g_reserve_mutex);
  if (g_reserved.load(std::memory_order_relaxed)) return true;
  for (std::size_t bytes = wanted_bytes(); bytes >= kLeast; bytes /= 2) {
    std::intptr_t base = raw::mmap(0, bytes, PROT_NONE, kReserveFlags);
    if (raw::failed(base)) continue;
    g_base = static_cast<std::uintptr_t>(base);
    g_bytes = bytes;
    raw::madvise(g_base, g_bytes, MADV_DONTDUMP);  // else the kernel dumps the empty terabyte page by page
    raw::mprotect(emergency_base(), kEmergencyBytes, PROT_READ | PROT_WRITE);
    g_next.store((g_base + kHuge - 1) & ~(kHuge - 1), std::memory_order_relaxed);
    g_reserved.store(true, std::memory_order_release);  // pairs with the acquire in map()
    return true;
  }
  return false;
}

}  // namespace

std::size_t used_bytes() {
  std::uintptr_t next = g_next.load(std::memory_order_relaxed);  // a figure
  return next > g_base ? next - g_base : 0;
}

std::uintptr_t emergency_base() { return g_base + g_bytes - kEmergencyBytes; }

std::intptr_t map(const void* hint, std::size_t length) {
  if (!g_reserved.load(std::memory_order_acquire) && !reserve()) return -ENOMEM;
  if (hint != nullptr || length > g_bytes) return -ENOMEM;
  std::size_t alignment = length >= kHuge ? kHuge : kPageSize;
  // relaxed: the counter only makes ranges disjoint
  std::uintptr_t next = g_next.load(std::memory_order_relaxed), start;
  do {
    start = (next + alignment - 1) & ~(alignment - 1);
    if (start + length > emergency_base()) return -ENOMEM;
  } while (!g_next.compare_exchange_weak(next, start + length, std::memory_order_relaxed));
  return raw::mmap(start, length, PROT_READ | PROT_WRITE, kReserveFlags | MAP_FIXED);
}

int unmap(std::uintptr_t address, std::size_t length) {
  // The addresses stay reserved: nothing else may come to lie in the range.
  std::intptr_t result = raw::mmap(address, length, PROT_NONE, kReserveFlags | MAP_FIXED);
  // At the limit of mappings nothing is mapped, not even over what is there: then it is emptied, and forbidden.
  if (result == -ENOMEM) result = raw::mprotect(address, length, PROT_NONE);
  if (result == 0) result = raw::madvise(address, length, MADV_DONTNEED);
  if (raw::failed(result)) return static_cast<int>(result);
  raw::madvise(address, length, MADV_DONTDUMP);
  return 0;
}

}  // namespace hinterland::local_range
