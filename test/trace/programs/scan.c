// Goes through a long row of which it does not know the end: that changes on the way, where no reader of the loop
// sees it.
//     scan COUNT ROUNDS
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static size_t limit;

__attribute__((noinline)) static void end_at(size_t place) { limit = place; }

__attribute__((noinline)) static uint64_t sum_of(const uint64_t* column, size_t stop) {
  uint64_t sum = 0;
  for (size_t i = 3; i < limit; ++i) {
    sum += column[i] ^ i;
    if (i == stop) end_at(i + 100);
  }
  return sum;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  size_t count = strtoul(argv[1], NULL, 10), rounds = strtoul(argv[2], NULL, 10);
  uint64_t* column = malloc(count * sizeof *column);
  if (column == NULL) return 1;
  for (size_t i = 0; i < count; ++i) column[i] = i * 2654435761u;
  for (size_t round = 0; round < rounds; ++round) {
    limit = count;
    printf("%llu %zu\n", (unsigned long long)sum_of(column, count - 12345 * (round + 1)), limit);
  }
  free(column);
  return 0;
}
