// Far memory whose every page is told from the others, and how much of it is right.
#pragma once

#include "../../preload/report.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define PAGE 4096ul
#define PAGES 4096ul  // 16 MiB: twice the budget

static inline char* new_bytes(void) {
  char* at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(at != MAP_FAILED);
  for (size_t i = 0; i < PAGES; ++i) *(uint64_t*)(at + i * PAGE) = (i + 1) * 0x9e3779b97f4a7c15u;
  return at;
}

static inline void count_right(const char* when, const char* at) {
  size_t right = 0;
  for (size_t i = 0; i < PAGES; ++i) right += *(const uint64_t*)(at + i * PAGE) == (i + 1) * 0x9e3779b97f4a7c15u;
  printf("%s: %zu pages right\n", when, right);
  fflush(stdout);
}

// More far memory can be had, the first is as it was, and a child has it.
static inline void show_that_paging_goes_on(const char* far) {
  count_right("more", new_bytes());
  count_right("the first", far);
  pid_t child = fork();
  if (child == 0) {
    count_right("in a child", far);
    _exit(5);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  printf("child %d\n", WEXITSTATUS(status));
}

// Natively the program has no far memory.
static inline int has_far_memory(void) { return getenv("EXPECT_PRELOADED") != NULL; }

static inline void show(const char* what, long result) {
  printf("%s: %ld errno %d\n", what, result, result == -1 ? errno : 0);
  fflush(stdout);
}
