// Address space reserved without memory behind it: zeros that cost nothing until they are touched.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "base/raw_call.hpp"

namespace hinterland {

#ifdef HINTERLAND_STEPPED  // the same calls, of which the fake kernel hears (testing/step_seams.cpp)
void* raw_mmap(void* address, std::size_t length, int protection, int flags, int descriptor = -1);
int raw_munmap(void* address, std::size_t length);
int raw_mprotect(void* address, std::size_t length, int protection);
int raw_madvise(void* address, std::size_t length, int advice);
#else
// System calls made directly: in a preloaded library the libc symbols are the interposers.
inline void* raw_mmap(void* address, std::size_t length, int protection, int flags, int descriptor = -1) {
  return reinterpret_cast<void*>(raw::checked(SYS_mmap, address, length, protection, flags, descriptor, 0));
}
inline int raw_munmap(void* address, std::size_t length) {
  return static_cast<int>(raw::checked(SYS_munmap, address, length));
}
inline int raw_mprotect(void* address, std::size_t length, int protection) {
  return static_cast<int>(raw::checked(SYS_mprotect, address, length, protection));
}
inline int raw_madvise(void* address, std::size_t length, int advice) {
  return static_cast<int>(raw::checked(SYS_madvise, address, length, advice));
}
#endif

// Zeroed private memory, charged only as it is touched. nullptr when the address space is used up. Not for the
// kernel's core files: it would look at gigabytes of untouched pages one by one while the program dies.
inline void* reserve_zeroed(std::size_t bytes) {
  void* memory = raw_mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  if (memory == MAP_FAILED) return nullptr;
  raw_madvise(memory, bytes, MADV_DONTDUMP);
  return memory;
}

}  // namespace hinterland
