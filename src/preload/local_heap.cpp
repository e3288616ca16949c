#include "preload/local_heap.hpp"

#include <algorithm>
#include <cstring>

#include "preload/heap_gate.hpp"
#include "preload/jemalloc.hpp"

namespace hinterland::local_heap {
namespace {

// No thread cache: its bins are shared by all arenas, and a local block in one would be handed out as far memory.
constexpr int kLocal = je_arena(0) | kJeNoCache;
// jemalloc aligns blocks of up to 8 bytes to 8; the ABI promises 16.
constexpr std::size_t kLeastSize = 9;

}  // namespace

void* allocate(std::size_t size, std::size_t alignment, bool zero) {
  size = std::max(size, kLeastSize);
  while (!heap_gate::enter()) {
    if (void* block = heap_gate::emergency_allocate(size, alignment)) return block;
    if (!heap_gate::wait_for_others()) return nullptr;
  }
  int flags = kLocal | (zero ? kJeZero : 0) | (alignment > 16 ? je_alignment(alignment) : 0);
  void* block = hlje_mallocx(size, flags);
  heap_gate::leave();
  return block;
}

void* resize(void* pointer, std::size_t size) {
  size = std::max(size, kLeastSize);
  if (!heap_gate::is_emergency(pointer) && heap_gate::enter()) {
    void* block = hlje_rallocx(pointer, size, kLocal);
    heap_gate::leave();
    return block;
  }
  void* block = allocate(size);
  if (block == nullptr) return nullptr;
  std::memcpy(block, pointer, std::min(size, usable_size(pointer)));
  release(pointer);
  return block;
}

void release(void* pointer) {
  if (heap_gate::is_emergency(pointer)) return heap_gate::emergency_release();
  if (!heap_gate::enter()) return heap_gate::free_later(pointer);
  hlje_dallocx(pointer, kJeNoCache);
  heap_gate::leave();
}

std::size_t usable_size(const void* pointer) {
  return heap_gate::is_emergency(pointer) ? heap_gate::emergency_size(pointer) : hlje_sallocx(pointer, 0);
}

}  // namespace hinterland::local_heap
