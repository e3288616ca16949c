// A program that gives its privileges away before its memory nears the budget, as servers do, is kept within it all
// the same: paging begins with what was opened at the start.
#include "report.h"

#include <sys/mman.h>
#include <time.h>

enum { kPage = 4096, kPages = 20000, kBudgetPages = 4096, kUser = 65534 };

static long resident_pages(void) {
  char line[256];
  long kib = -1;
  FILE* status = fopen("/proc/self/status", "r");
  CHECK(status != NULL);
  while (fgets(line, sizeof line, status) != NULL)
    if (sscanf(line, "RssAnon: %ld", &kib) == 1) break;
  fclose(status);
  CHECK(kib >= 0);
  return kib / 4;
}

int main(void) {
  check_preloaded();
  if (geteuid() != 0) {
    fprintf(stderr, "needs root, to become another user\n");
    return 77;
  }
  CHECK(setgid(kUser) == 0 && setuid(kUser) == 0);
  unsigned char* memory =
      mmap(NULL, (size_t)kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  for (int page = 0; page < kPages; ++page) {
    memory[(size_t)page * kPage] = (unsigned char)(page % 251);
    if (page % 256 == 0) nanosleep(&(struct timespec){0, 1000000}, NULL);  // the runtime looks now and then
  }
  int wrong = 0;
  for (int page = 0; page < kPages; ++page) wrong += memory[(size_t)page * kPage] != (unsigned char)(page % 251);
  printf("wrong %d\n", wrong);
  // Half as much again for what is no far memory.
  if (getenv("EXPECT_PRELOADED") != NULL && resident_pages() > kBudgetPages * 3 / 2) {
    fprintf(stderr, "%ld pages of %d are resident, the budget is %d\n", resident_pages(), kPages, kBudgetPages);
    return 1;
  }
  return 0;
}
