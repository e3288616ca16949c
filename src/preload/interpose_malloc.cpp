// The malloc family as glibc has it, errors included.
//
// Four kinds of memory come back to free() and realloc(): local blocks, far blocks and those of the object window,
// each told by its address, and foreign ones (glibc's own, from __libc_malloc, or from the own calls of an allocator
// that the program is linked to), which go to the next free() and realloc() in the lookup order, as they would
// without us.
#include <gnu/libc-version.h>
#include <malloc.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "preload/allocation_watch.hpp"
#include "preload/far_heap.hpp"
#include "preload/loader_range.hpp"
#include "preload/local_heap.hpp"
#include "preload/next.hpp"
#include "preload/stack_room.hpp"
#include "preload/state.hpp"
#include "preload/window_blocks.hpp"

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

namespace {

using namespace hinterland;
using stack_room::with_room;

constexpr std::size_t kSizeMax = PTRDIFF_MAX;  // glibc's limit, too

enum class Source { far, local, native };

Source source_for(const void* caller) {
  if (serves_program() && !loader_range::contains(caller)) [[likely]]
    return Source::far;
  return mode() == Mode::native ? Source::native : Source::local;
}

bool is_far(const void* pointer) { return mode() == Mode::far && far_heap::owns(pointer); }

void* out_of_memory() {
  errno = ENOMEM;
  return nullptr;
}

// Local memory, for the program (libc's own blocks in signal mode, the loader's), or for the runtime, which is on a
// stack with room.
template <typename Body>
auto locally(Body&& body) {
  return t_inside_runtime != 0 ? body() : with_room(body);
}

void* or_out_of_memory(void* block) { return block != nullptr ? block : out_of_memory(); }

void* allocate(std::size_t size, const void* caller) {
  switch (source_for(caller)) {
    case Source::far:
      return allocation_watch::allocate(size, [&] { return with_room([&] { return far_heap::allocate(size); }); });
    case Source::native:
      return __libc_malloc(size);
    case Source::local:
      break;
  }
  if (size > kSizeMax) return out_of_memory();
  return or_out_of_memory(locally([&] { return local_heap::allocate(size); }));
}

void* allocate_far_zeroed(std::size_t count, std::size_t size) {
  std::size_t bytes = 0;  // of what overflows nothing comes
  if (__builtin_mul_overflow(count, size, &bytes)) bytes = 0;
  return allocation_watch::allocate(
      bytes, [&] { return with_room([&] { return far_heap::allocate_zeroed(count, size); }); });
}

void* allocate_zeroed(std::size_t count, std::size_t size, const void* caller) {
  switch (source_for(caller)) {
    case Source::far:
      return allocate_far_zeroed(count, size);
    case Source::native:
      return __libc_calloc(count, size);
    case Source::local:
      break;
  }
  std::size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > kSizeMax) return out_of_memory();
  return or_out_of_memory(locally([&] { return local_heap::allocate(bytes, 0, true); }));
}

void* allocate_aligned(std::size_t alignment, std::size_t size, const void* caller) {
  if (size > kSizeMax || alignment > kSizeMax) return out_of_memory();
  switch (source_for(caller)) {
    case Source::far:
      return allocation_watch::allocate(
          size, [&] { return with_room([&] { return far_heap::allocate_aligned(alignment, size); }); });
    case Source::native:
      return __libc_memalign(alignment, size);
    case Source::local:
      break;
  }
  return or_out_of_memory(locally([&] { return local_heap::allocate(size, alignment); }));
}

std::size_t usable_size_of(void* pointer) {
  static constinit Next<std::size_t(void*)> next("malloc_usable_size");
  if (pointer == nullptr) return 0;
  if (local_heap::owns(pointer)) return locally([&] { return local_heap::usable_size(pointer); });
  if (is_far(pointer)) return with_room([&] { return far_heap::usable_size(pointer); });
  if (window_blocks::owns(pointer)) return window_blocks::g_calls.size_of(pointer);
  return next.get()(pointer);
}

// What the program would call without us: libc's, or those of an allocator that is linked to it.
constinit Next<void(void*)> g_next_free("free");
constinit Next<void*(void*, std::size_t)> g_next_realloc("realloc");

void release_foreign(void* pointer) {
  if (mode() == Mode::far) return g_next_free.get()(pointer);
  __libc_free(pointer);
}

void release(void* pointer) {
  if (pointer == nullptr) return;
  if (is_far(pointer)) [[likely]] {
    allocation_watch::release(pointer);
    return with_room([&] { far_heap::release(pointer); });
  }
  if (local_heap::owns(pointer)) return locally([&] { local_heap::release(pointer); });
  if (window_blocks::owns(pointer)) return window_blocks::g_calls.release(pointer);
  release_foreign(pointer);
}

void* resize_local(void* pointer, std::size_t size, const void* caller) {
  if (size > kSizeMax) return out_of_memory();
  if (source_for(caller) == Source::local)
    return or_out_of_memory(locally([&] { return local_heap::resize(pointer, size); }));
  void* block = allocate(size, caller);
  if (block == nullptr) return nullptr;
  std::memcpy(block, pointer, std::min(size, usable_size_of(pointer)));
  locally([&] { local_heap::release(pointer); });
  return block;
}

// Stays in the window while it is small enough for that, whoever asks.
void* resize_in_window(void* pointer, std::size_t size, const void* caller) {
  const window_blocks::Calls& window = window_blocks::g_calls;
  const std::size_t had = window.size_of(pointer);
  if (size <= had && size > had / 2) return pointer;
  void* block = window.allocate(size, false);
  if (block == nullptr) block = allocate(size, caller);
  if (block == nullptr) return nullptr;
  window.move(block, pointer, std::min(size, had));
  window.release(pointer);
  return block;
}

void* resize(void* pointer, std::size_t size, const void* caller) {
  if (pointer == nullptr) return allocate(size, caller);
  if (size == 0) {
    release(pointer);
    return nullptr;
  }
  if (is_far(pointer)) [[likely]]
    return allocation_watch::resize(pointer, size,
                                    [&] { return with_room([&] { return far_heap::resize(pointer, size); }); });
  if (local_heap::owns(pointer)) return resize_local(pointer, size, caller);
  if (window_blocks::owns(pointer)) return resize_in_window(pointer, size, caller);
  // A foreign block stays with who made it.
  return mode() == Mode::far ? g_next_realloc.get()(pointer, size) : __libc_realloc(pointer, size);
}

// As glibc's memalign: rounded up to a power of two; too large is EINVAL.
void* memory_aligned(std::size_t alignment, std::size_t size, const void* caller) {
  if (alignment > SIZE_MAX / 2 + 1) {
    errno = EINVAL;
    return nullptr;
  }
  return allocate_aligned(std::bit_ceil(std::max<std::size_t>(alignment, 16)), size, caller);
}

bool libc_checks_aligned_alloc() {
  static const bool checks = [] {
    const char* version = gnu_get_libc_version();
    const char* dot = std::strchr(version, '.');
    long major = std::strtol(version, nullptr, 10), minor = dot != nullptr ? std::strtol(dot + 1, nullptr, 10) : 0;
    return major > 2 || (major == 2 && minor >= 38);
  }();
  return checks;
}

}  // namespace

#define HL_CALLER __builtin_return_address(0)

HL_INTERPOSED void* malloc(std::size_t size) noexcept { return allocate(size, HL_CALLER); }
HL_INTERPOSED void free(void* pointer) noexcept { release(pointer); }
HL_INTERPOSED void cfree(void* pointer) noexcept { release(pointer); }
HL_INTERPOSED void* calloc(std::size_t count, std::size_t size) noexcept {
  return allocate_zeroed(count, size, HL_CALLER);
}
HL_INTERPOSED void* realloc(void* pointer, std::size_t size) noexcept { return resize(pointer, size, HL_CALLER); }
HL_INTERPOSED void* reallocarray(void* pointer, std::size_t count, std::size_t size) noexcept {
  std::size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return out_of_memory();
  return resize(pointer, bytes, HL_CALLER);
}
HL_INTERPOSED void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return memory_aligned(alignment, size, HL_CALLER);
}
HL_INTERPOSED void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  if (!std::has_single_bit(alignment) && libc_checks_aligned_alloc()) {
    errno = EINVAL;
    return nullptr;
  }
  return memory_aligned(alignment, size, HL_CALLER);
}
HL_INTERPOSED int posix_memalign(void** out, std::size_t alignment, std::size_t size) noexcept {
  if (alignment % sizeof(void*) != 0 || !std::has_single_bit(alignment)) return EINVAL;
  void* block = allocate_aligned(alignment, size, HL_CALLER);
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}
HL_INTERPOSED void* valloc(std::size_t size) noexcept { return allocate_aligned(kPageSize, size, HL_CALLER); }
HL_INTERPOSED void* pvalloc(std::size_t size) noexcept {
  if (size > kSizeMax) return out_of_memory();
  return allocate_aligned(kPageSize, page_ceil(size), HL_CALLER);
}
HL_INTERPOSED std::size_t malloc_usable_size(void* pointer) noexcept { return usable_size_of(pointer); }

// Tuning of an allocator that is not there. Nothing is kept that could be trimmed.
HL_INTERPOSED int malloc_trim(std::size_t) noexcept { return 0; }
HL_INTERPOSED int mallopt(int, int) noexcept { return 1; }
HL_INTERPOSED struct mallinfo mallinfo() noexcept { return {}; }
HL_INTERPOSED struct mallinfo2 mallinfo2() noexcept { return {}; }
