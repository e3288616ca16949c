/* Items of two pages: the first has the key, which each look-up compares; the second is used by one in ten, or as
 * told. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAGE = 4096 };

struct item {
  uint64_t key, uses;
  char rest[PAGE - 16];
  uint64_t value[PAGE / 8];
};

__attribute__((noinline)) static uint64_t value_of(const struct item* item, size_t i) { return item->value[i]; }

int main(int count, char** arguments) {
  size_t items = count > 1 ? strtoul(arguments[1], NULL, 10) : 2048;
  size_t lookups = count > 2 ? strtoul(arguments[2], NULL, 10) : 20000;
  size_t every = count > 3 ? strtoul(arguments[3], NULL, 10) : 10;
  struct item* all = aligned_alloc(PAGE, items * sizeof *all);
  if (all == NULL) return 3;
  for (size_t i = 0; i < items; ++i) {
    all[i].key = i;
    all[i].value[0] = i * 3 + 1;
  }
  uint64_t state = 1, sum = 0;
  for (size_t i = 0; i < lookups; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    size_t at = (state >> 33) % items;
    const struct item* item = &all[at];
    if (item->key != at) return 4;
    if (i % every == 0) sum += value_of(item, 0);
  }
  printf("%llu\n", (unsigned long long)sum);
  return 0;
}
