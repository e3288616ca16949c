// System calls made directly. In a preloaded library the libc names are our own interposers, and libc's wrappers
// set errno, which an allocation hook must not change. All return -errno on failure.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "base/raw_call.hpp"

namespace hinterland::raw {

inline std::intptr_t mmap(std::uintptr_t address, std::size_t length, int protection, int flags, int descriptor = -1,
                          off_t offset = 0) {
  return call(SYS_mmap, static_cast<long>(address), static_cast<long>(length), protection, flags, descriptor, offset);
}
inline int munmap(std::uintptr_t address, std::size_t length) {
  return static_cast<int>(call(SYS_munmap, static_cast<long>(address), static_cast<long>(length)));
}
inline int mprotect(std::uintptr_t address, std::size_t length, int protection) {
  return static_cast<int>(call(SYS_mprotect, static_cast<long>(address), static_cast<long>(length), protection));
}
inline int madvise(std::uintptr_t address, std::size_t length, int advice) {
  return static_cast<int>(call(SYS_madvise, static_cast<long>(address), static_cast<long>(length), advice));
}
inline std::intptr_t mremap(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                            std::uintptr_t new_address) {
  return call(SYS_mremap, static_cast<long>(address), static_cast<long>(old_length), static_cast<long>(new_length),
              flags, static_cast<long>(new_address));
}
inline int mincore(std::uintptr_t address, std::size_t length, unsigned char* vector) {
  return static_cast<int>(
      call(SYS_mincore, static_cast<long>(address), static_cast<long>(length), reinterpret_cast<long>(vector)));
}

}  // namespace hinterland::raw
