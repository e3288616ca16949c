// A lane: one random sequence of memory calls on addresses of its own. Many lanes take turns, so that the pages of
// one leave local memory while the others work; what a lane does depends on its seed alone.
//
// Each result goes into the lane's digest, and into the trace when that is asked for. Addresses are recorded as page
// numbers in the lane's two stretches: `inside` (an ordinary mapping, far memory under
// test) and `outside` (at an address that the program chose, over a mapping of its own; of every
// second lane mostly MAP_STACK, which stays local). Calls that let the kernel choose an address make the lane's
// `away` mapping. Gaps beside the stretches draw such mappings, so that they never land in a hole of a lane.
#pragma once

#include "../report.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

enum {
  kPage = 4096,
  kInside = 24,  // pages
  kOutside = 12,
  kStride = 64,  // pages from one lane to the next, of either kind
  kLanes = 256,
  kCalls = 30,      // of a sequence
  kFilePages = 16,  // of a lane's own file
  kPatternPages = 64,
};

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

struct Lane {
  uint64_t random;
  uint64_t digest;
  char* inside;
  char* outside;
  char* away;  // NULL: none
  unsigned away_pages;
  unsigned number;
  unsigned call;
  bool alone;   // maps nothing shared: its bytes stay the same while a forked child or its parent works
  bool forked;  // in a child
};

struct Range {
  char* at;
  unsigned pages;
  unsigned room;  // pages from `at` to the end of the stretch
};

extern bool g_multiple_moves;  // mremap moves across mappings (Linux 6.17)
extern int g_own_files;        // kFilePages of each lane, readable and writable
extern int g_small_file;       // kFilePages, read-only

// --- lane.c
unsigned draw(struct Lane* lane, unsigned below);
bool chance(struct Lane* lane, unsigned percent);
struct Range draw_range(struct Lane* lane, unsigned longest);
char* draw_target(struct Lane* lane, unsigned pages);
long place(const struct Lane* lane, const void* address);
int draw_protection(struct Lane* lane);
// A mapping came to lie where the kernel chose: it is the lane's away mapping now, and what was that goes.
void note_away(struct Lane* lane, void* address, unsigned pages);
// A hole in the away mapping would draw another lane's: after a call that may have made one, all of it goes.
void drop_away_if_in(struct Lane* lane, const void* address);

// --- record.c
extern long g_traced;  // the sequence whose calls are printed, -1 for none
void record(struct Lane* lane, const char* what, long a, long b, long c, long result, int error);
void record_digest(struct Lane* lane, const char* what, uint64_t digest);
// record() of a call that has just returned.
#define RECORD(lane, what, a, b, c, result)                                      \
  do {                                                                           \
    long record_result = (long)(result);                                         \
    record(lane, what, a, b, c, record_result, record_result == -1 ? errno : 0); \
  } while (0)

// --- the calls
int stack_flag(struct Lane* lane);
void call_map(struct Lane* lane);
void call_map_badly(struct Lane* lane);
void call_unmap(struct Lane* lane);
void call_protect(struct Lane* lane);
void call_advise(struct Lane* lane);
void call_free_advice(struct Lane* lane);
void call_remap(struct Lane* lane);
void call_remap_badly(struct Lane* lane);
void call_lock(struct Lane* lane);
void call_core(struct Lane* lane);
void call_sync(struct Lane* lane);

// --- bytes.c
void open_bytes(void);
void open_copy(void);  // in a forked child: its copies must not meet its parent's
void call_write(struct Lane* lane);
void call_touch(struct Lane* lane);
void call_show(struct Lane* lane);
uint64_t digest_of(const char* at, unsigned pages);
uint64_t digest_of_lane(const struct Lane* lane);
