// Sums values in a random order. One line tells the runtime what the next line reads.
//
//   build/examples/hint                                          runs as any program
//   build/bin/hinterland run --local 16M -- build/examples/hint  three quarters of its memory are far
#include <hinterland/hint.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  const size_t count = (size_t)64 << 20 >> 3;  // 64 MiB
  uint64_t* values = malloc(count * sizeof *values);
  if (values == NULL) return 1;
  for (size_t i = 0; i < count; ++i) {
    hl_seq_write(&values[i]);
    values[i] = i;
  }
  uint64_t sum = 0, random = 1;
  for (int i = 0; i < 100000; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const uint64_t* value = &values[(random >> 33) % count];
    hl_read(value);
    sum += *value;
  }
  printf("%llu\n", (unsigned long long)sum);
  free(values);
  return 0;
}
