// Shared by the test programs: results as lines on standard output, which natively and preloaded must be the same.
#pragma once

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      printf("%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno); \
      fflush(stdout);                                                          \
      _exit(3);                                                                \
    }                                                                          \
  } while (0)

// Natively the library is not there; under test it must be: a test of nothing would pass.
static inline void check_preloaded(void) {
  const char* expected = getenv("EXPECT_PRELOADED");
  if (expected == NULL) return;
  char line[512];
  int found = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  CHECK(maps != NULL);
  while (fgets(line, sizeof line, maps) != NULL) found |= strstr(line, "libhinterland-preload") != NULL;
  fclose(maps);
  CHECK(found);
}
