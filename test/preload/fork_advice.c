// MADV_DONTFORK and MADV_WIPEONFORK: what a child finds, what it can map there, and that the parent keeps its own.
#include "report.h"

#include <sys/mman.h>
#include <sys/wait.h>

enum { kPage = 4096, kPages = 4096 };  // 16 MiB, more than the budget

static char* g_memory;

static void fill(char mark) {
  for (int page = 0; page < kPages; ++page) memset(g_memory + (size_t)page * kPage, mark + page % 50, kPage);
}
static int holds(int first, int count, char mark) {
  for (int page = first; page < first + count; ++page)
    if (g_memory[(size_t)page * kPage + 99] != (mark == 0 ? 0 : mark + page % 50)) return 0;
  return 1;
}
static char* at(int page) { return g_memory + (size_t)page * kPage; }

// The mapping's end is not inherited, its middle is wiped.
static int in_child(int generation) {
  printf("generation %d: inherited %d\n", generation, holds(0, 1000, 1));
  printf("wiped %d\n", holds(1000, 1000, 0));
  unsigned char present[1];
  int there = generation == 1 ? mincore(at(3000), kPage, present) : -1;  // later, its parent's mappings may be there
  printf("not inherited: %d\n", there);
  // Everything the child maps comes to lie beside what it has, and nothing of the parent's shows.
  for (int i = 0; i < 20; ++i) {
    char* more = mmap(NULL, 100 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(more != MAP_FAILED && more[50 * kPage] == 0);
    memset(more, 77, 100 * kPage);
  }
  int taken = holds(0, 1000, 1);
  errno = 0;
  char* again = mmap(at(4000), 96 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  printf("kept %d, mapped again %d, zero %d\n", taken, again == at(4000), again[5000] == 0);
  memset(again, 9, 96 * kPage);
  memset(at(1000), 5, 10 * kPage);  // wiped once more for the next generation
  fflush(stdout);
  if (generation == 2) return 0;
  pid_t child = fork();
  if (child == 0) _exit(in_child(2) + (again[0] == 9 ? 0 : 8));
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  return status != 0;
}

int main(void) {
  check_preloaded();
  g_memory = mmap(NULL, (size_t)kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(g_memory != MAP_FAILED);
  fill(1);
  CHECK(madvise(at(1000), 1000 * kPage, MADV_WIPEONFORK) == 0);
  CHECK(madvise(at(2000), 2096 * kPage, MADV_DONTFORK) == 0);
  CHECK(madvise(at(2000), 100 * kPage, MADV_DOFORK) == 0);
  // The advice goes with a mapping that moves.
  char* moved = mremap(at(3500), 100 * kPage, 200 * kPage, MREMAP_MAYMOVE);
  CHECK(moved != MAP_FAILED);
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    unsigned char present[1];
    printf("undone %d, moved: %d\n", holds(2000, 100, 1), mincore(moved, kPage, present));
    _exit(in_child(1));
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  printf("child %d; parent has all: %d %d\n", status, holds(0, 3500, 1), moved[99] == 1 + 3500 % 50);
  return 0;
}
