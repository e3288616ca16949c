/* A priority that does nothing but harm: a large table is gone through in a circle, so that no page of it comes back
 * while it is local, and a small one at random, whose pages come back soon and are sent away first.
 *
 * hurting_priority PAGES ROUNDS: the pages of the large table, and how often it is gone through. */
#include <hinterland/hint.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, WARM = 2048 };

static char *table, *warm;

__attribute__((noinline)) static uint64_t sent_away(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  volatile uint64_t* at = (volatile uint64_t*)(warm + (*state >> 33) % WARM * PAGE);
  hl_hint((const void*)at, .ev_prio = 15); /* MARK priority */
  return *at;
}

int main(int count, char** arguments) {
  size_t pages = count > 1 ? strtoul(arguments[1], NULL, 10) : 4096;
  size_t rounds = count > 2 ? strtoul(arguments[2], NULL, 10) : 1;
  uint64_t state = 42, sum = 0;
  table = aligned_alloc(PAGE, pages * PAGE);
  warm = aligned_alloc(PAGE, WARM * PAGE);
  if (table == NULL || warm == NULL) return 3;
  memset(table, 1, pages * PAGE);
  memset(warm, 1, WARM * PAGE);
  for (size_t round = 0; round < rounds * pages; ++round)
    sum += *(volatile uint64_t*)(table + round % pages * PAGE) + sent_away(&state);
  printf("%llu\n", (unsigned long long)sum);
  return 0;
}
