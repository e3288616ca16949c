// Memory that is never far, by raw system calls: a mapping of the program's could be far, and its heap may be at work
// where a signal handler or a vfork child calls.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstddef>

#include "base/raw_call.hpp"

namespace hinterland {

// Null: the kernel refuses.
inline void* map_local(std::size_t bytes) {
  long made = raw::call(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return raw::failed(made) ? nullptr : reinterpret_cast<void*>(made);
}
inline void unmap_local(void* address, std::size_t bytes) {
  raw::call(SYS_munmap, reinterpret_cast<long>(address), static_cast<long>(bytes));
}

}  // namespace hinterland
