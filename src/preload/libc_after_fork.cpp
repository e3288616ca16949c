#include "preload/libc_after_fork.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "base/inside.hpp"

extern "C" {
void _IO_list_lock();
void _IO_list_unlock();
void _IO_list_resetlock();
extern FILE* _IO_list_all;
}

namespace hinterland::libc_after_fork {
namespace {

constexpr int kUserLock = 0x8000;  // glibc's _IO_USER_LOCK: the stream takes no lock of its own
struct StreamLock {                // glibc's _IO_lock_t
  int lock;
  int count;
  void* owner;
};

unsigned* g_thread_count = nullptr;  // __nptl_nthreads
// The loader's three recursive mutexes lie side by side in _rtld_global: load, load_write, tls.
pthread_mutex_t* g_loader_locks = nullptr;

void find_loader_locks() {
  void* global = dlvsym(RTLD_DEFAULT, "_rtld_global", "GLIBC_PRIVATE");
  Dl_info info;
  void* entry = nullptr;
  if (global == nullptr || dladdr1(global, &info, &entry, RTLD_DL_SYMENT) == 0) return;
  const auto* symbol = static_cast<const ElfW(Sym)*>(entry);
  if (symbol == nullptr || info.dli_saddr != global) return;
  const pthread_mutex_t fresh[3] = {PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                                    PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};
  auto* bytes = static_cast<char*>(global);
  for (std::size_t offset = 0; offset + sizeof fresh <= symbol->st_size; offset += sizeof(void*)) {
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): padding too is as the initializer left it
    if (std::memcmp(bytes + offset, fresh, sizeof fresh) != 0) continue;
    g_loader_locks = reinterpret_cast<pthread_mutex_t*>(bytes + offset);
    return;
  }
}

void reset_stream_locks() {
  for (FILE* stream = _IO_list_all; stream != nullptr; stream = stream->_chain)
    if ((stream->_flags & kUserLock) == 0 && stream->_lock != nullptr)
      *reinterpret_cast<StreamLock*>(stream->_lock) = {};
}

}  // namespace

void prepare() {
  InsideRuntime inside;
  g_thread_count = static_cast<unsigned*>(dlvsym(RTLD_DEFAULT, "__nptl_nthreads", "GLIBC_PRIVATE"));
  find_loader_locks();
}

void lock_stdio() { _IO_list_lock(); }
void unlock_stdio() { _IO_list_unlock(); }

void count_one_thread() {
  if (g_thread_count != nullptr) *g_thread_count = 1;
}

void repair_child() {
  reset_stream_locks();
  _IO_list_resetlock();
  if (g_loader_locks == nullptr) return;
  g_loader_locks[0] = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  g_loader_locks[2] = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

}  // namespace hinterland::libc_after_fork
