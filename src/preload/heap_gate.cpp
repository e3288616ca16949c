#include "preload/heap_gate.hpp"

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "preload/jemalloc.hpp"
#include "preload/local_range.hpp"
#include "preload/raw.hpp"

namespace hinterland::heap_gate {
namespace {

struct Header {
  std::size_t size;
  std::size_t unused;  // keeps blocks 16-byte aligned
};
struct Later {
  Later* next;
};

std::atomic<std::uint32_t> g_inside{0};
std::atomic<bool> g_closed{false};
// The emergency region: bytes given out, and blocks that are still in use, in one word. With the last block
// everything is free again, so that a program may fork as often as it likes.
std::atomic<std::uint64_t> g_emergency{0};
constexpr std::uint64_t kOneBlock = std::uint64_t{1} << 32;
constexpr std::uint64_t kUsedMask = kOneBlock - 1;
static_assert(local_range::kEmergencyBytes <= kUsedMask);
std::atomic<Later*> g_later{nullptr};
__attribute__((tls_model("initial-exec"))) thread_local int t_passed = 0;
__attribute__((tls_model("initial-exec"))) thread_local bool t_closed_it = false;

void drain_later() {
  ++t_passed;
  // acquire: pairs with the release in free_later(), which wrote the link
  Later* block = g_later.exchange(nullptr, std::memory_order_acquire);
  while (block != nullptr) {
    Later* next = block->next;
    hlje_dallocx(block, kJeNoCache);
    block = next;
  }
  --t_passed;
}

}  // namespace

bool enter() {
  ++t_passed;
  g_inside.fetch_add(1, std::memory_order_seq_cst);
  if (!g_closed.load(std::memory_order_seq_cst)) return true;
  leave();
  return false;
}

void leave() {
  g_inside.fetch_sub(1, std::memory_order_seq_cst);
  --t_passed;
}

bool passed_by_this_thread() { return t_passed > 0; }

void close() {
  t_closed_it = true;
  g_closed.store(true, std::memory_order_seq_cst);
  // Short: an allocation under way waits for nobody that waits for us.
  while (g_inside.load(std::memory_order_seq_cst) != 0) raw::call(SYS_sched_yield);
}

bool wait_for_others() {
  if (t_closed_it) return false;
  raw::call(SYS_sched_yield);
  return true;
}

void open_in_parent() {
  t_closed_it = false;
  g_closed.store(false, std::memory_order_seq_cst);
  drain_later();
}

void open_in_child() {
  t_closed_it = false;
  g_inside.store(0, std::memory_order_seq_cst);  // whoever was on the way in does not exist here
  g_closed.store(false, std::memory_order_seq_cst);
  drain_later();
}

void* emergency_allocate(std::size_t size, std::size_t alignment) {
  if (alignment < 16) alignment = 16;
  if (size > local_range::kEmergencyBytes || alignment > local_range::kEmergencyBytes) return nullptr;
  std::size_t room = sizeof(Header) + size + alignment;
  room = (room + 15) & ~std::size_t{15};
  // Who closed the gate cannot wait for it, so the others leave him half.
  std::size_t most = t_closed_it ? local_range::kEmergencyBytes : local_range::kEmergencyBytes / 2;
  // acquire: pairs with emergency_release(), whose caller has read and written these bytes before
  std::uint64_t before = g_emergency.load(std::memory_order_relaxed);
  do {
    if ((before & kUsedMask) + room > most) return nullptr;
  } while (!g_emergency.compare_exchange_weak(before, before + kOneBlock + room, std::memory_order_acquire,
                                              std::memory_order_relaxed));
  std::size_t offset = before & kUsedMask;
  std::uintptr_t start = local_range::emergency_base() + offset + sizeof(Header);
  start = (start + alignment - 1) & ~(alignment - 1);
  reinterpret_cast<Header*>(start)[-1].size = size;
  return std::memset(reinterpret_cast<void*>(start), 0, size);
}

void emergency_release() {
  std::uint64_t before = g_emergency.load(std::memory_order_relaxed);
  // release: pairs with emergency_allocate()
  while (!g_emergency.compare_exchange_weak(before, before < 2 * kOneBlock ? 0 : before - kOneBlock,
                                            std::memory_order_release, std::memory_order_relaxed)) {
  }
}

bool is_emergency(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) - local_range::emergency_base() < local_range::kEmergencyBytes;
}

std::size_t emergency_size(const void* pointer) { return static_cast<const Header*>(pointer)[-1].size; }

void free_later(void* pointer) {
  auto* block = static_cast<Later*>(pointer);
  block->next = g_later.load(std::memory_order_relaxed);
  // release: pairs with the acquire in drain_later()
  while (!g_later.compare_exchange_weak(block->next, block, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

}  // namespace hinterland::heap_gate
