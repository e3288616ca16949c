/* One hint of each kind that `advise` objects to, and one that it must leave alone; the lines are marked.
 *
 * bad_hints PAGES ROUNDS: a table of PAGES pages; each round goes through it in random order, once for each kind. */
#include <hinterland/hint.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, ROW = 4, HOT = 8, WARM = 64 };

static char* table;
static char *hot, *warm;
static size_t pages;

static char* any_page(uint64_t* state, size_t most) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return table + (*state >> 33) % most * PAGE;
}

__attribute__((noinline)) static uint64_t good(uint64_t* state) {
  volatile uint64_t* at = (volatile uint64_t*)any_page(state, pages);
  hl_read(at); /* MARK good */
  return *at;
}

__attribute__((noinline)) static uint64_t seldom(size_t round) {
  volatile uint64_t* at = (volatile uint64_t*)(hot + round % HOT * PAGE);
  hl_read(at); /* MARK seldom */
  return *at;
}

__attribute__((noinline)) static uint64_t late(uint64_t* state) {
  volatile uint64_t* node = (volatile uint64_t*)any_page(state, pages);
  uint64_t value = *node; /* MARK late_fault */
  hl_read(node);          /* MARK late */
  return value + node[1];
}

__attribute__((noinline)) static uint64_t wrong(uint64_t* state) {
  volatile uint64_t* other = (volatile uint64_t*)any_page(state, pages);
  volatile uint64_t* used = (volatile uint64_t*)any_page(state, pages);
  hl_read(other); /* MARK wrong */
  return *used;   /* MARK wrong_fault */
}

__attribute__((noinline)) static uint64_t small(uint64_t* state) {
  char* row = any_page(state, pages - ROW);
  uint64_t sum = 0;
  hl_hint(row, .size = PAGE);                                                    /* MARK small */
  for (size_t i = 0; i < ROW; ++i) sum += *(volatile uint64_t*)(row + i * PAGE); /* MARK small_fault */
  return sum;
}

__attribute__((noinline)) static uint64_t ahead(uint64_t* state) {
  volatile uint64_t* at = (volatile uint64_t*)any_page(state, pages);
  hl_hint((const void*)at, .rdahead = 8); /* MARK ahead */
  return *at;
}

/* A few pages, which come back all the time. */
__attribute__((noinline)) static uint64_t sent_away(uint64_t* state) {
  volatile uint64_t* at = (volatile uint64_t*)(warm + (any_page(state, WARM) - table));
  hl_hint((const void*)at, .ev_prio = 15); /* MARK priority */
  return *at;
}

int main(int count, char** arguments) {
  pages = count > 1 ? strtoul(arguments[1], NULL, 10) : 2048;
  size_t rounds = count > 2 ? strtoul(arguments[2], NULL, 10) : 1;
  uint64_t state = 42, sum = 0;
  table = aligned_alloc(PAGE, pages * PAGE);
  hot = aligned_alloc(PAGE, HOT * PAGE);
  warm = aligned_alloc(PAGE, WARM * PAGE);
  if (table == NULL || hot == NULL || warm == NULL) return 3;
  for (size_t i = 0; i < pages; ++i) memset(table + i * PAGE, (int)(i % 251) + 1, PAGE);
  memset(hot, 1, HOT * PAGE);
  memset(warm, 1, WARM * PAGE);
  for (size_t round = 0; round < rounds * pages; ++round) {
    sum += good(&state) + seldom(round) + late(&state) + wrong(&state) + ahead(&state);
    if (round % 4 == 0) sum += small(&state);
    sum += sent_away(&state);
  }
  printf("%llu\n", (unsigned long long)sum);
  return 0;
}
