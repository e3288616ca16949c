// The far heap: the program's allocations, in jemalloc arenas whose memory is the pager's.
//
// Several arenas per CPU, threads spread over them; a thread's cache holds only far blocks. What jemalloc has no use
// for goes back to the pager by decommit and keeps its addresses. Metadata is local, so that allocating and
// freeing touches no far page (measured: 1 page where mimalloc touches 2004).
#pragma once

#include <cstddef>
#include <cstdint>

#include "preload/state.hpp"

namespace hinterland::far_heap {

// After Pager::start(). From then on the functions below work.
void start();

// Paging has begun: from now on freed extents are offered to the pager at once, so that what is freed never travels.
// Before, they wait a while for the program to take them again, as in plain jemalloc, because giving them back costs
// system calls and faults.
void give_back_promptly();

// As malloc, calloc and so on, errno included. Alignment: a power of two.
void* allocate(std::size_t size);
void* allocate_zeroed(std::size_t count, std::size_t size);
void* allocate_aligned(std::size_t alignment, std::size_t size);
void* resize(void* pointer, std::size_t size);
void release(void* pointer);
std::size_t usable_size(const void* pointer);

// Whether a block in the window is this heap's; another allocator in the program may have mapped its memory there.
// The heap has whole chunks of the window, and keeps them.
inline constexpr std::size_t kChunkBytes = std::size_t{2} << 20;
extern std::uint8_t* g_chunks;  // by chunk: not 0 when it is the heap's
inline bool owns(const void* pointer) {
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(pointer) - pager().window_base();
  return offset < pager().window_bytes() && g_chunks[offset / kChunkBytes] != 0;
}

// The program is about to ask something for these pages that lasts (protection, advice, locks, another mapping): of
// the heap's blocks it ends when they are freed.
void note_request(std::uintptr_t address, std::size_t length);

// Around a fork, before jemalloc's own handlers.
void before_fork();
void after_fork();

}  // namespace hinterland::far_heap
