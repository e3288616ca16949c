/* A program with hints whose fetches are known.
 *
 * hinted PAGES ROUNDS: fills an array of PAGES pages; then ROUNDS times reads each page once in a random order behind
 * a hint for it (hinted_reads), writes a quarter as many in rows of four behind a hint for the row (hinted_rows), and
 * reads an eighth as many without a hint (plain_reads). The lines are marked: the test finds their numbers. */
#include <hinterland/hint.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, ROW = 4 };

static char* memory;
static size_t pages;

static size_t next(uint64_t* state, size_t most) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (*state >> 33) % most;
}

__attribute__((noinline)) static uint64_t hinted_reads(uint64_t* state, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) {
    volatile uint64_t* at = (volatile uint64_t*)(memory + next(state, pages) * PAGE);
    hl_read(at); /* MARK read */
    sum += *at;
  }
  return sum;
}

__attribute__((noinline)) static void hinted_rows(uint64_t* state, size_t count) {
  for (size_t i = 0; i < count; i += ROW) {
    char* row = memory + next(state, pages - ROW) * PAGE;
    hl_hint(row, .mut = 1, .size = ROW * PAGE); /* MARK row */
    for (size_t page = 0; page < ROW; ++page) *(volatile uint64_t*)(row + page * PAGE + 64) = i;
  }
}

__attribute__((noinline)) static uint64_t plain_reads(uint64_t* state, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i)
    sum += *(volatile uint64_t*)(memory + next(state, pages) * PAGE + 8); /* MARK plain */
  return sum;
}

int main(int count, char** arguments) {
  pages = count > 1 ? strtoul(arguments[1], NULL, 10) : 8192;
  size_t rounds = count > 2 ? strtoul(arguments[2], NULL, 10) : 1;
  uint64_t state = 42, sum = 0;
  memory = aligned_alloc(PAGE, pages * PAGE);
  if (memory == NULL) return 3;
  for (size_t i = 0; i < pages; ++i) memset(memory + i * PAGE, (int)(i % 251) + 1, PAGE);
  for (size_t round = 0; round < rounds; ++round) {
    sum += hinted_reads(&state, pages);
    hinted_rows(&state, pages / 4);
    sum += plain_reads(&state, pages / 8);
  }
  printf("%llu\n", (unsigned long long)sum);
  return 0;
}
