// mmap() and munmap() for a program that builds a machine for each of a million schedules: memory of the kind that
// devices and their tables reserve is kept, emptied, for the next machine. Making and destroying mappings that
// processes share was half of the program's time. Here nobody shares them, so they are private.
//
// One thread. They stand before libc's in the program that links this file.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace {

constexpr int kFlags = MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, kProtection = PROT_READ | PROT_WRITE;

struct Mapping {
  void* memory;
  std::size_t bytes;
  bool in_use;
};
Mapping g_mappings[64];
std::size_t g_count = 0;

void* map(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) {
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

}  // namespace

extern "C" void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  if (address != nullptr || flags != kFlags || protection != kProtection)
    return map(address, bytes, protection, flags, file, offset);
  Mapping* end = g_mappings + g_count;
  Mapping* found = std::find_if(g_mappings, end,
                                [&](const Mapping& mapping) { return !mapping.in_use && mapping.bytes == bytes; });
  if (found == end) {
    if (g_count == std::size(g_mappings)) return map(address, bytes, protection, flags, file, offset);
    void* memory = map(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return memory;
    *found = {memory, bytes, false};
    ++g_count;
  }
  found->in_use = true;
  return found->memory;
}

extern "C" int munmap(void* address, std::size_t bytes) noexcept {
  Mapping* end = g_mappings + g_count;
  Mapping* found = std::find_if(g_mappings, end,
                                [&](const Mapping& mapping) { return mapping.in_use && mapping.memory == address; });
  if (found == end || found->bytes != bytes) return static_cast<int>(syscall(SYS_munmap, address, bytes));
  found->in_use = false;
  return madvise(address, bytes, MADV_DONTNEED);  // zeros again
}
