// A program that frees memory and afterwards only maps and unmaps: what the runtime allocates for its own books then
// makes the heap give freed memory back, in the middle of a mmap or munmap. It must not wait for itself.
#include "report.h"

#include <sys/mman.h>
#include <time.h>

enum { kBlocks = 20000, kRounds = 6, kMappings = 64 };

static void free_many(unsigned round) {
  static void* blocks[kBlocks];
  for (unsigned i = 0; i < kBlocks; ++i) blocks[i] = malloc(16 + (i * 37 + round * 101) % 3000);
  for (unsigned i = 0; i < kBlocks; ++i) {
    memset(blocks[i], 1, 16);
    free(blocks[i]);
  }
}

// As long as the heap takes to find that the blocks are not wanted any more, and longer.
static unsigned map_for_a_while(void) {
  unsigned wrong = 0;
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    char* mappings[kMappings];
    for (int i = 0; i < kMappings; ++i) {
      mappings[i] = mmap(NULL, 8192, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (mappings[i] == MAP_FAILED || mappings[i][4096] != 0) ++wrong;
    }
    for (int i = 0; i < kMappings; ++i) wrong += munmap(mappings[i], 8192) != 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < 250);
  return wrong;
}

int main(void) {
  check_preloaded();
  for (unsigned round = 0; round < kRounds; ++round) {
    free_many(round);
    printf("round %u: %u wrong\n", round, map_for_a_while());
  }
  return 0;
}
