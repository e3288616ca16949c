// Loops over arrays of all kinds: up, down, by pointers, with early ends, in rows, gathered, copied. Some 64 MiB.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT ((size_t)1 << 20)

static uint64_t digest_of(const uint32_t* values, size_t count) {
  uint64_t digest = 0;
  for (size_t i = 0; i < count; ++i) digest = (digest ^ values[i]) * 0x100000001b3;
  return digest;
}

static void fill(uint32_t* values, size_t count, uint32_t seed) {
  for (size_t i = 0; i < count; ++i) values[i] = seed = seed * 1664525 + 1013904223;
}

static void triad(double* a, const double* b, const double* c, int count) {
  for (int i = 0; i < count; ++i) a[i] = b[i] + 3 * c[i];
}
static void backwards(uint32_t* values, long count) {
  for (long i = count - 1; i >= 0; --i) values[i] ^= (uint32_t)i;
}
static void by_pointers(uint32_t* at, const uint32_t* end) {
  while (at != end) *at++ += 3;
}
static void by_three(uint32_t* values, unsigned count) {
  for (unsigned i = 0; i < count; i += 3) values[i] ^= 0x5555;
}
static size_t find(const uint32_t* values, size_t count, uint32_t wanted) {
  for (size_t i = 0; i < count; ++i)
    if (values[i] == wanted) return i;
  return count;
}
static uint64_t gather(const uint32_t* values, const uint32_t* places, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += values[places[i] % COUNT] ^ i;
  return sum;
}
static void scatter(uint32_t* values, const uint32_t* places, size_t count) {
  for (size_t i = 0; i < count; ++i) values[places[i] % COUNT] += (uint32_t)i;
}
static double rows(const double* matrix, int height, int width) {
  double sum = 0;
  for (int row = 0; row < height; ++row)
    for (int column = 0; column < width; ++column) sum += matrix[row * width + column] * (column + 1);
  return sum;
}
static double columns(const double* matrix, int height, int width) {
  double sum = 0;
  for (int column = 0; column < width; column += 7)
    for (int row = 0; row < height; ++row) sum += matrix[row * width + column] / (row + 1);
  return sum;
}
static void copies(char* to, const char* from, size_t bytes) {
  for (size_t size = 1, at = 0; at + size < bytes; at += size, size = size * 3 / 2 + 1)
    memcpy(to + at, from + at, size);
  memmove(to + 100, to, bytes / 2);
  memset(to + bytes / 2, 42, bytes / 8);
}

int main(void) {
  uint32_t *values = malloc(COUNT * 4), *places = malloc(COUNT * 4);
  double *a = malloc(COUNT * 8), *b = malloc(COUNT * 8), *c = malloc(COUNT * 8);
  fill(values, COUNT, 1);
  fill(places, COUNT, 2);
  for (size_t i = 0; i < COUNT; ++i) b[i] = (double)(values[i] % 1000), c[i] = (double)(places[i] % 1000);
  triad(a, b, c, (int)COUNT);
  printf("triad %.3f\n", rows(a, 1024, 1024));
  printf("columns %.6f\n", columns(a, 1024, 1024));
  backwards(values, (long)COUNT);
  by_pointers(values + 5, values + COUNT - 5);
  by_three(values, (unsigned)COUNT);
  scatter(values, places, COUNT);
  printf("values %016llx\n", (unsigned long long)digest_of(values, COUNT));
  printf("gather %016llx\n", (unsigned long long)gather(values, places, COUNT));
  printf("find %zu %zu\n", find(values, COUNT, values[COUNT / 2]), find(values, COUNT, 77777));
  copies((char*)a, (const char*)b, COUNT * 8);
  printf("copies %016llx\n", (unsigned long long)digest_of((uint32_t*)a, COUNT * 2));
  for (size_t n = 0; n < 70; ++n) printf("%016llx ", (unsigned long long)digest_of(values + n, n));
  printf("\n");
  return 0;
}
