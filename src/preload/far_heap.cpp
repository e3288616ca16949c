#include "preload/far_heap.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "base/check.hpp"
#include "base/inside.hpp"
#include "base/large_block.hpp"
#include "base/mutex.hpp"
#include "base/own_stack.hpp"
#include "paging/page/reservation.hpp"
#include "paging/pager.hpp"
#include "preload/heap_gate.hpp"
#include "preload/jemalloc.hpp"
#include "preload/limits.hpp"
#include "preload/uninterrupted.hpp"

namespace hinterland::far_heap {

std::uint8_t* g_chunks = nullptr;

namespace {

std::size_t chunk_of(std::uintptr_t address) { return (address - Pager::current()->window_base()) / kChunkBytes; }

// jemalloc.h's extent_hooks_t (5.x). A null hook counts as one that refuses: extents are never unmapped (their
// addresses are kept for later) and never purged otherwise than by decommit.
struct ExtentHooks {
  void* (*alloc)(ExtentHooks*, void* address, std::size_t size, std::size_t alignment, bool* zero, bool* commit,
                 unsigned arena);
  bool (*dalloc)(ExtentHooks*, void*, std::size_t, bool, unsigned);
  void (*destroy)(ExtentHooks*, void*, std::size_t, bool, unsigned);
  bool (*commit)(ExtentHooks*, void* address, std::size_t size, std::size_t offset, std::size_t length, unsigned);
  bool (*decommit)(ExtentHooks*, void* address, std::size_t size, std::size_t offset, std::size_t length, unsigned);
  bool (*purge_lazy)(ExtentHooks*, void*, std::size_t, std::size_t, std::size_t, unsigned);
  bool (*purge_forced)(ExtentHooks*, void*, std::size_t, std::size_t, std::size_t, unsigned);
  bool (*split)(ExtentHooks*, void*, std::size_t, std::size_t, std::size_t, bool, unsigned);
  bool (*merge)(ExtentHooks*, void*, std::size_t, void*, std::size_t, bool, unsigned);
};
// experimental.arenas_create_ext's argument (5.3, internal/arena_types.h).
struct ArenaConfiguration {
  ExtentHooks* hooks;
  bool metadata_use_hooks;
};

// In a hook: the pager's own allocations are local, and the caller of free() sees its errno unchanged.
class InHook {
 public:
  ~InHook() { errno = saved_errno_; }

 private:
  Uninterrupted inside_;
  int saved_errno_ = errno;
};

__attribute__((tls_model("initial-exec"))) thread_local bool t_needs_zeros = true;

// While one lives, what its thread takes from the heap holds zeros, or may hold anything. jemalloc takes what was
// decommitted for zeros, and what malloc gives need not be.
class NeedsZeros {
 public:
  explicit NeedsZeros(bool needs) : before_(t_needs_zeros) { t_needs_zeros = needs; }
  ~NeedsZeros() { t_needs_zeros = before_; }
  NeedsZeros(const NeedsZeros&) = delete;
  NeedsZeros& operator=(const NeedsZeros&) = delete;

 private:
  bool before_;
};

// jemalloc's hooks say true for "did not work".
void* hook_alloc(ExtentHooks*, void* address, std::size_t size, std::size_t alignment, bool* zero, bool* commit,
                 unsigned) {
  if (address != nullptr) return nullptr;  // growing in place: only within retained memory
  InHook in_hook;
  // Whole chunks, so that none holds a mapping of the program's as well.
  const std::size_t chunks = (size + kChunkBytes - 1) / kChunkBytes;
  if (!limits::allow(chunks * kChunkBytes, true)) return nullptr;
  alignment = std::max(alignment, kChunkBytes);
  // The program asked for that, or up to a fifth less: jemalloc's sizes are so far apart.
  const int flags = pager().has_room_for(size - size / 5) ? MAP_NORESERVE : 0;
  std::intptr_t result = on_own_stack([=] {
    return pager().map(chunks * kChunkBytes, alignment, PROT_READ | PROT_WRITE, flags, 0, {.kind = HL_MAPPING_HEAP});
  });
  if (result < 0 && result >= -4095) return nullptr;
  std::memset(g_chunks + chunk_of(static_cast<std::uintptr_t>(result)), 1, chunks);
  *zero = true;
  *commit = true;
  return reinterpret_cast<void*>(result);
}
bool hook_commit(ExtentHooks*, void* address, std::size_t, std::size_t offset, std::size_t length, unsigned) {
  const auto start = reinterpret_cast<std::uintptr_t>(address) + offset;
  if (!t_needs_zeros) {
    InHook in_hook;
    on_own_stack([=] { pager().commit_uncleared(start, length); });
    return false;
  }
  // Neither allocates nor takes a lock: a handler that comes meanwhile is as good as at any other time, and so is a
  // fault on a far stack.
  Pager::current()->commit(start, length);
  return false;
}
bool hook_decommit(ExtentHooks*, void* address, std::size_t, std::size_t offset, std::size_t length, unsigned) {
  // The runtime's own allocations count for jemalloc's events, too: one of them may empty the thread's cache, far
  // blocks included. The runtime then is in the middle of something, maybe with the lock that decommit() needs, or in
  // a child whose pager is not there yet (I6). The extent stays as it is, until the heap takes it again.
  if (heap_gate::passed_by_this_thread()) return true;
  InHook in_hook;
  on_own_stack([=] { pager().decommit(reinterpret_cast<std::uintptr_t>(address) + offset, length); });
  return false;
}
bool hook_split(ExtentHooks*, void*, std::size_t, std::size_t, std::size_t, bool, unsigned) { return false; }
bool hook_merge(ExtentHooks*, void*, std::size_t, void*, std::size_t, bool, unsigned) { return false; }

ExtentHooks g_hooks = {hook_alloc, nullptr, nullptr,    hook_commit, hook_decommit,
                       nullptr,    nullptr, hook_split, hook_merge};

constexpr std::size_t kArenasMax = 1024;                 // jemalloc has 4095
constexpr unsigned kArenasPerCpu = 4;                    // jemalloc's own choice: rarely two running threads in one
std::array<std::atomic<unsigned>, kArenasMax> g_arenas;  // 0: not created yet (0 is the local arena)
unsigned g_arena_count = 0;
std::atomic<unsigned> g_next_thread{0};
Mutex g_create_mutex;  // before jemalloc's locks

__attribute__((tls_model("initial-exec"))) thread_local bool t_attached = false;

unsigned create_arena() {
  unsigned index = 0;
  std::size_t index_size = sizeof index;
  ArenaConfiguration configuration = {&g_hooks, false};
  int error =
      hlje_mallctl("experimental.arenas_create_ext", &index, &index_size, &configuration, sizeof configuration);
  return error == 0 ? index : 0;
}

unsigned arena_at(std::size_t slot) {
  // acquire and release: the arena is complete when its number can be seen
  unsigned index = g_arenas[slot].load(std::memory_order_acquire);
  if (index != 0) return index;
  LockGuard guard(g_create_mutex);
  index = g_arenas[slot].load(std::memory_order_acquire);
  if (index == 0) {
    index = create_arena();
    g_arenas[slot].store(index, std::memory_order_release);
  }
  return index;
}

// Gives the thread its arena. Without one (no memory for it) the thread allocates locally and asks again.
__attribute__((noinline)) void attach() {
  int saved_errno = errno;
  std::size_t slot = g_next_thread.fetch_add(1, std::memory_order_relaxed) % g_arena_count;
  unsigned index = arena_at(slot);
  if (index != 0 && hlje_mallctl("thread.arena", nullptr, nullptr, &index, sizeof index) == 0) t_attached = true;
  errno = saved_errno;
}

// jemalloc does not set errno in all cases.
inline void* or_no_memory(void* block) {
  if (block == nullptr) [[unlikely]]
    errno = ENOMEM;
  return block;
}

// Else jemalloc would begin a large block somewhere in its first page.
void* allocate_on_pages(std::size_t size, int flags = 0) {
  NeedsZeros zeros(flags != 0);
  return or_no_memory(hlje_mallocx(size, flags | je_alignment(kPageSize)));
}

bool is_movable(const void* block) {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  return far_heap::owns(block) && page_floor(address) == address;
}

// As glibc does by mremap: to copy touches each page of the new block, and each far page of the old one comes back,
// to leave again. Nothing in the middle of a fork, or of the runtime's own work.
bool move_contents(void* from, void* to, std::size_t length) {
  if (heap_gate::passed_by_this_thread() || !is_movable(from) || !is_movable(to)) return false;
  InHook in_hook;
  return on_own_stack([=] {
    return pager().move_contents(reinterpret_cast<std::uintptr_t>(from), reinterpret_cast<std::uintptr_t>(to),
                                 length);
  });
}

// A block that becomes larger, and is a large one then. nullptr, and it is as it was, where there is no memory.
void* grow(void* block, std::size_t usable, std::size_t size) {
  if (hlje_xallocx(block, size, 0, 0) >= size) return block;
  void* grown = allocate_on_pages(size);
  if (grown == nullptr) return nullptr;
  if (usable < kLargeBlock || !move_contents(block, grown, usable)) std::memcpy(grown, block, usable);
  hlje_free(block);
  return grown;
}

// A chunk in which the program asked something for pages of its blocks; and that there is one.
constexpr std::uint8_t kAskedOf = 2;
std::atomic<bool> g_was_asked{false};

// Whole pages of a block that is about to be freed. Not in the midst of the runtime's own work.
__attribute__((noinline, cold)) void make_plain(void* block) {
  const auto start = reinterpret_cast<std::uintptr_t>(block);
  const std::uintptr_t first = page_ceil(start), end = page_floor(start + usable_size(block));
  bool asked = false;
  for (std::uintptr_t at = first; at < end; at = (at / kChunkBytes + 1) * kChunkBytes)
    asked |= std::atomic_ref(g_chunks[chunk_of(at)]).load(std::memory_order_relaxed) == kAskedOf;
  if (!asked || heap_gate::passed_by_this_thread()) return;
  InHook in_hook;
  on_own_stack([=] { pager().make_plain(first, end - first); });
}

inline std::size_t at_least_16_byte_class(std::size_t size) { return size < 9 ? 9 : size; }

}  // namespace

void start() {
  g_chunks = static_cast<std::uint8_t*>(reserve_zeroed(Pager::current()->window_bytes() / kChunkBytes + 1));
  HL_CHECK(g_chunks != nullptr);  // a byte for two megabytes of what was just reserved
  cpu_set_t cpus;
  unsigned count = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? static_cast<unsigned>(CPU_COUNT(&cpus)) : 1;
  g_arena_count = std::clamp(count * kArenasPerCpu, 4u, static_cast<unsigned>(kArenasMax));
}

void give_back_promptly() {
  InHook in_hook;
  ssize_t at_once = 0;
  hlje_mallctl("arenas.dirty_decay_ms", nullptr, nullptr, &at_once, sizeof at_once);  // for arenas still to come
  for (std::atomic<unsigned>& slot : g_arenas) {
    unsigned index = slot.load(std::memory_order_acquire);  // pairs with arena_at()
    if (index == 0) continue;
    char name[64];
    std::snprintf(name, sizeof name, "arena.%u.dirty_decay_ms", index);
    hlje_mallctl(name, nullptr, nullptr, &at_once, sizeof at_once);
  }
}

void* allocate(std::size_t size) {
  if (!t_attached) [[unlikely]]
    attach();
  return size < kLargeBlock ? hlje_malloc(at_least_16_byte_class(size)) : allocate_on_pages(size);
}

void* allocate_zeroed(std::size_t count, std::size_t size) {
  if (!t_attached) [[unlikely]]
    attach();
  std::size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  NeedsZeros zeros(true);
  return bytes < kLargeBlock ? hlje_calloc(1, at_least_16_byte_class(bytes)) : allocate_on_pages(bytes, kJeZero);
}

void* allocate_aligned(std::size_t alignment, std::size_t size) {
  if (!t_attached) [[unlikely]]
    attach();
  return or_no_memory(hlje_memalign(std::max<std::size_t>(alignment, 16), at_least_16_byte_class(size)));
}

void* resize(void* pointer, std::size_t size) {
  if (!t_attached) [[unlikely]]
    attach();
  if (size >= kLargeBlock)
    if (const std::size_t usable = usable_size(pointer); usable < size) return grow(pointer, usable, size);
  return or_no_memory(hlje_realloc(pointer, at_least_16_byte_class(size)));
}

void note_request(std::uintptr_t address, std::size_t length) {
  if (g_chunks == nullptr) return;  // there are no blocks yet
  const std::uintptr_t base = pager().window_base(), end = base + pager().window_bytes();
  const std::uintptr_t first = std::max(address, base), last = std::min(address + length, end);
  for (std::uintptr_t at = first; at < last; at = (at / kChunkBytes + 1) * kChunkBytes) {
    std::atomic_ref chunk(g_chunks[chunk_of(at)]);  // relaxed, all: who frees a block heard of it from who asked
    if (chunk.load(std::memory_order_relaxed) == 0) continue;
    chunk.store(kAskedOf, std::memory_order_relaxed);
    g_was_asked.store(true, std::memory_order_relaxed);
  }
}

void release(void* pointer) {
  if (g_was_asked.load(std::memory_order_relaxed)) [[unlikely]]
    make_plain(pointer);
  hlje_free(pointer);
}

std::size_t usable_size(const void* pointer) { return hlje_sallocx(pointer, 0); }

void before_fork() { g_create_mutex.lock(); }
void after_fork() { g_create_mutex.unlock(); }

}  // namespace hinterland::far_heap
