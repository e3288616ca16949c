// operator new and delete for this library alone (hidden): the runtime's own objects are local memory. The program's
// operators are those of its own C++ library, which calls malloc.
#include <cstddef>
#include <cstdlib>
#include <new>

#include "base/log.hpp"
#include "preload/local_heap.hpp"

namespace {

void* allocate_or_end(std::size_t size, std::size_t alignment) {
  void* block = hinterland::local_heap::allocate(size, alignment);
  if (block != nullptr) return block;
  // The runtime does not use exceptions, and none may cross into the program's frames.
  hinterland::log::error("cannot allocate %zu bytes of local memory for the runtime", size);
  std::abort();
}
std::size_t of(std::align_val_t alignment) { return static_cast<std::size_t>(alignment); }

}  // namespace

void* operator new(std::size_t size) { return allocate_or_end(size, 0); }
void* operator new[](std::size_t size) { return allocate_or_end(size, 0); }
void* operator new(std::size_t size, std::align_val_t a) { return allocate_or_end(size, of(a)); }
void* operator new[](std::size_t size, std::align_val_t a) { return allocate_or_end(size, of(a)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return hinterland::local_heap::allocate(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return hinterland::local_heap::allocate(size);
}
void* operator new(std::size_t size, std::align_val_t a, const std::nothrow_t&) noexcept {
  return hinterland::local_heap::allocate(size, of(a));
}
void* operator new[](std::size_t size, std::align_val_t a, const std::nothrow_t&) noexcept {
  return hinterland::local_heap::allocate(size, of(a));
}

namespace {
void release_unless_null(void* block) {
  if (block != nullptr) hinterland::local_heap::release(block);
}
}  // namespace

void operator delete(void* block) noexcept { release_unless_null(block); }
void operator delete[](void* block) noexcept { release_unless_null(block); }
void operator delete(void* block, std::size_t) noexcept { release_unless_null(block); }
void operator delete[](void* block, std::size_t) noexcept { release_unless_null(block); }
void operator delete(void* block, std::align_val_t) noexcept { release_unless_null(block); }
void operator delete[](void* block, std::align_val_t) noexcept { release_unless_null(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { release_unless_null(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { release_unless_null(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { release_unless_null(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { release_unless_null(block); }
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept { release_unless_null(block); }
void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept { release_unless_null(block); }
