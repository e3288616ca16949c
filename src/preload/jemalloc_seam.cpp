// What our private jemalloc calls instead of libc (CMakeLists.txt renames its references).
#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>

#include "base/inside.hpp"
#include "preload/jemalloc.hpp"
#include "preload/local_range.hpp"
#include "preload/raw.hpp"

namespace {
hinterland::JemallocForkHandlers g_fork_handlers;
}

namespace hinterland {
const JemallocForkHandlers& jemalloc_fork_handlers() { return g_fork_handlers; }
}  // namespace hinterland

extern "C" {

// One automatic arena, so that arena 0 is the only one that nobody asked for. Freed extents are given back after ten
// seconds (jemalloc's own default), or at once when paging has begun: far_heap::give_back_promptly(). No huge arena,
// which would take large allocations away from the thread's arena. What a thread frees of up to 128 KiB (from where
// on glibc maps by default) it keeps for itself, eight of a size: to decommit an extent and to clear it when it is
// taken again costs a buffer that is needed for a moment, again and again, more than what is done with it.
extern const char* hlje_malloc_conf;
const char* hlje_malloc_conf =
    "narenas:1,retain:true,dirty_decay_ms:10000,muzzy_decay_ms:0,metadata_thp:disabled,background_thread:false,"
    "percpu_arena:disabled,oversize_threshold:0,lg_tcache_max:17,tcache_nslots_large:8";

// The program's MALLOC_CONF and /etc/malloc.conf are for the program's own jemalloc.
char* hlje_secure_getenv(const char*) { return nullptr; }
ssize_t hlje_readlink(const char*, char*, std::size_t) {
  errno = ENOENT;
  return -1;
}

// Kept, and called by fork.cpp at the one right moment: after all other handlers, next to the pager's.
int hlje_pthread_atfork(void (*prepare)(), void (*parent)(), void (*child)()) {
  g_fork_handlers = {prepare, parent, child};
  return 0;
}

// Only for background threads, which are off.
int hlje_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) { return EAGAIN; }

void* hlje_mmap(void* hint, std::size_t length, int protection, int flags, int, off_t) {
  using namespace hinterland;
  auto address = reinterpret_cast<std::uintptr_t>(hint);
  std::intptr_t result =
      (flags & MAP_FIXED) != 0 ? raw::mmap(address, length, protection, flags) : local_range::map(hint, length);
  return raw::failed(result) ? MAP_FAILED : reinterpret_cast<void*>(result);
}
int hlje_munmap(void* address, std::size_t length) {
  return hinterland::local_range::unmap(reinterpret_cast<std::uintptr_t>(address), length) < 0 ? -1 : 0;
}
int hlje_madvise(void* address, std::size_t length, int advice) {
  return hinterland::raw::madvise(reinterpret_cast<std::uintptr_t>(address), length, advice) < 0 ? -1 : 0;
}
int hlje_mprotect(void* address, std::size_t length, int protection) {
  return hinterland::raw::mprotect(reinterpret_cast<std::uintptr_t>(address), length, protection) < 0 ? -1 : 0;
}
void* hlje_sbrk(std::ptrdiff_t) { return reinterpret_cast<void*>(-1); }

}  // extern "C"
