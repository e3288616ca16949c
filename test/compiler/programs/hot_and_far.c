// Two kinds of hints: one in a loop over a small table that is always local, one at accesses all over memory that is
// not. hot_and_far ROUNDS LOOKUPS [exit]: prints digests; `exit`: ends by _exit.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kSmall = 512, kNumbers = 2 << 20 };

// One hint, and little else that a processor could do beside it.
__attribute__((noinline)) static uint64_t hot(const uint64_t* small, uint64_t rounds) {
  uint64_t sum = 0;
#pragma clang loop unroll(disable) vectorize(disable)
  for (uint64_t i = 0; i < rounds; ++i) sum += small[(i * 0x9E3779B1 >> 16) % kSmall];
  return sum;
}

__attribute__((noinline)) static uint64_t far(uint64_t* numbers, uint64_t count, uint64_t lookups) {
  uint64_t at = 7, sum = 0;
  for (uint64_t i = 0; i < lookups; ++i) {
    at = at * 6364136223846793005u + 1442695040888963407u;
    sum = sum * 31 + numbers[(at >> 20) % count]++;
  }
  return sum;
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const uint64_t rounds = strtoull(arguments[1], NULL, 10), lookups = strtoull(arguments[2], NULL, 10);
  uint64_t *small = calloc(kSmall, sizeof *small), *numbers = calloc(kNumbers, sizeof *numbers);
  if (small == NULL || numbers == NULL) return 1;
  for (uint64_t i = 0; i < kSmall; ++i) small[i] = i;
  for (uint64_t i = 0; i < kNumbers; ++i) numbers[i] = i;
  printf("%llu\n", (unsigned long long)hot(small, rounds));
  printf("%llx\n", (unsigned long long)far(numbers, kNumbers, lookups));
  fflush(stdout);
  if (count > 3 && strcmp(arguments[3], "exit") == 0) _exit(0);
  return 0;
}
