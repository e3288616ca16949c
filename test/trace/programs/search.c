// Looks for a word in a text that lies in memory, a piece at a time: one call of the library goes through many pages,
// of which the source names the first.
//     search BYTES ROUNDS
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 100000

static size_t found_in(const char* text, size_t bytes) {
  size_t found = 0;
  for (size_t at = 0; at + PIECE <= bytes; at += PIECE) {
    const char* piece = text + at;
    if (memmem(piece, PIECE, "needle", 6) != NULL) ++found;
  }
  return found;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  size_t bytes = strtoul(argv[1], NULL, 10), rounds = strtoul(argv[2], NULL, 10), found = 0;
  char* text = malloc(bytes);
  if (text == NULL) return 1;
  for (size_t i = 0; i < bytes; ++i) text[i] = (char)('a' + i * 7 % 23);
  for (size_t i = 0; i + 6 < bytes; i += 3 * PIECE) memcpy(text + i, "needle", 6);
  for (size_t round = 0; round < rounds; ++round) found += found_in(text, bytes);
  printf("%zu\n", found);
  free(text);
  return 0;
}
