#include "preload/heap_gate.hpp"

#include <sched.h>

#include <atomic>
#include <cstdint>

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
std::atomic<std::size_t> g_emergency_used{0};
std::atomic<Later*> g_later{nullptr};
__attribute__((tls_model("initial-exec"))) thread_local int t_passed = 0;

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
  g_closed.store(true, std::memory_order_seq_cst);
  // Short: an allocation under way waits for nobody that waits for us.
  while (g_inside.load(std::memory_order_seq_cst) != 0) raw::call(SYS_sched_yield);
}

void open_in_parent() {
  g_closed.store(false, std::memory_order_seq_cst);
  drain_later();
}

void open_in_child() {
  g_inside.store(0, std::memory_order_seq_cst);  // whoever was on the way in does not exist here
  g_closed.store(false, std::memory_order_seq_cst);
  drain_later();
}

void* emergency_allocate(std::size_t size, std::size_t alignment) {
  if (alignment < 16) alignment = 16;
  if (size > local_range::kEmergencyBytes || alignment > local_range::kEmergencyBytes) return nullptr;
  std::size_t room = sizeof(Header) + size + alignment;
  room = (room + 15) & ~std::size_t{15};
  // relaxed: the counter only makes blocks disjoint
  std::size_t offset = g_emergency_used.fetch_add(room, std::memory_order_relaxed);
  if (offset + room > local_range::kEmergencyBytes) return nullptr;
  std::uintptr_t start = local_range::emergency_base() + offset + sizeof(Header);
  start = (start + alignment - 1) & ~(alignment - 1);
  reinterpret_cast<Header*>(start)[-1].size = size;
  return reinterpret_cast<void*>(start);
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
