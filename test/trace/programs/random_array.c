/* Reads and writes an array at random places. random_array PAGES ROUNDS */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t next(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

__attribute__((noinline)) static uint64_t look_up(const uint64_t* table, const uint32_t* keys, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += table[keys[i]];
  return sum;
}

__attribute__((noinline)) static void update(uint64_t* table, const uint32_t* keys, size_t count) {
  for (size_t i = 0; i < count; i += 4) {
    table[keys[i]] += i;
  }
}

int main(int count, char** arguments) {
  size_t pages = count > 1 ? strtoul(arguments[1], NULL, 10) : 4096,
         rounds = count > 2 ? strtoul(arguments[2], NULL, 10) : 2;
  size_t entries = pages * 512;
  uint64_t* table = malloc(entries * sizeof *table);
  uint32_t* keys = malloc(pages * sizeof *keys);
  if (table == NULL || keys == NULL) return 3;
  uint64_t state = 1, sum = 0;
  for (size_t i = 0; i < entries; ++i) table[i] = i;
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < pages; ++i) keys[i] = (uint32_t)(next(&state) % entries);
    sum += look_up(table, keys, pages);
    update(table, keys, pages);
  }
  printf("%llu\n", (unsigned long long)sum);
  free(table);
  free(keys);
  return 0;
}
