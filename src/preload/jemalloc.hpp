// Our private jemalloc 5.3: every public name of Debian's archive carries the prefix hlje_ (CMakeLists.txt renames
// them), so that it meets neither the program's allocator nor another jemalloc in the process.
//
// Arena 0 is local memory; the arenas that far_heap.cpp creates are far memory. jemalloc's own metadata, thread
// caches included, always comes from arena 0's side (local_range.hpp).
#pragma once

#include <cstddef>

extern "C" {
void* hlje_malloc(std::size_t size);
void* hlje_calloc(std::size_t count, std::size_t size);
void* hlje_realloc(void* pointer, std::size_t size);
void hlje_free(void* pointer);
void* hlje_memalign(std::size_t alignment, std::size_t size);
void* hlje_mallocx(std::size_t size, int flags);
void* hlje_rallocx(void* pointer, std::size_t size, int flags);
void hlje_dallocx(void* pointer, int flags);
std::size_t hlje_xallocx(void* pointer, std::size_t size, std::size_t extra, int flags);
std::size_t hlje_sallocx(const void* pointer, int flags);
int hlje_mallctl(const char* name, void* old_value, std::size_t* old_size, void* new_value, std::size_t new_size);
}

namespace hinterland {

// The values of jemalloc.h's MALLOCX_* macros. That header declares the unprefixed names, so it cannot be included.
inline constexpr int kJeZero = 0x40;
inline constexpr int kJeNoCache = 1 << 8;  // MALLOCX_TCACHE_NONE
constexpr int je_arena(unsigned index) { return static_cast<int>((index + 1) << 20); }
constexpr int je_alignment(std::size_t power_of_two) { return __builtin_ctzl(power_of_two); }

// The handlers that jemalloc would have given to pthread_atfork.
struct JemallocForkHandlers {
  void (*prepare)() = nullptr;
  void (*parent)() = nullptr;
  void (*child)() = nullptr;
};
const JemallocForkHandlers& jemalloc_fork_handlers();

}  // namespace hinterland
