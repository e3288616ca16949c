/* Records of 480 bytes side by side, so that one in ten lies on two pages: the key is compared, and strlen(3) goes on
 * from there.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 480 };

struct record {
  uint64_t key;
  char text[];
};

int main(int count, char** arguments) {
  size_t records = count > 1 ? strtoul(arguments[1], NULL, 10) : 40000;
  size_t lookups = count > 2 ? strtoul(arguments[2], NULL, 10) : 30000;
  char* all = aligned_alloc(4096, (records * BYTES + 4095) / 4096 * 4096);
  if (all == NULL) return 3;
  for (size_t i = 0; i < records; ++i) {
    struct record* record = (struct record*)(all + i * BYTES);
    record->key = i;
    memset(record->text, 'a' + (int)(i % 26), 400 + i % 60);
    record->text[400 + i % 60] = '\0';
  }
  uint64_t state = 1, sum = 0;
  for (size_t i = 0; i < lookups; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    size_t at = (state >> 33) % records;
    const struct record* record = (const struct record*)(all + at * BYTES);
    if (record->key != at) return 4;
    sum += strlen(record->text);
  }
  printf("%llu\n", (unsigned long long)sum);
  return 0;
}
