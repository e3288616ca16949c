// mlock and mlockall within a limit on locked memory: for users without CAP_IPC_LOCK, so that it skips for others.
#include "report.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { kPage = 4096 };
#define MIB ((size_t)1 << 20)

static void set_limit(size_t bytes) {
  struct rlimit limit;
  CHECK(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
  limit.rlim_cur = bytes;
  CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
}

static char* map(size_t bytes, int flags) {
  char* mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  return mapped == MAP_FAILED ? NULL : mapped;
}

static void said(const char* what, int failed) { printf("%s: %s\n", what, failed ? strerrorname_np(errno) : "done"); }

static size_t locked_kib(void) {
  char line[256];
  size_t kib = 0;
  FILE* status = fopen("/proc/self/status", "r");
  CHECK(status != NULL);
  while (fgets(line, sizeof line, status) != NULL) sscanf(line, "VmLck: %zu", &kib);
  fclose(status);
  return kib;
}

// Everything that is mapped from now on is locked, as far as the limit goes; what is unmapped counts no more.
static void future(void) {
  set_limit(4 * MIB);
  said("mlockall of the future", mlockall(MCL_FUTURE) != 0);
  int failed = 0;
  for (int round = 0; round < 50; ++round) {
    char* mapped = map(3 * MIB, 0);
    failed += mapped == NULL;
    if (mapped == NULL) continue;
    for (size_t at = 0; at < 3 * MIB; at += kPage) mapped[at] = (char)round;
    failed += mapped[2 * MIB] != (char)round;
    failed += munmap(mapped + MIB, 2 * MIB) != 0;
    failed += munmap(mapped, MIB) != 0;
  }
  printf("within the limit, failed %d\n", failed);
  said("more than the limit", map(6 * MIB, 0) == NULL);
  char* kept = map(2 * MIB, 0);
  CHECK(kept != NULL);
  memset(kept, 5, 2 * MIB);
  said("together more than the limit", map(3 * MIB, 0) == NULL);
  char* moved = mremap(kept, 2 * MIB, MIB, 0);
  printf("shrunk %d, right %d\n", moved == kept, moved[MIB - 1] == 5);
  said("munlockall", munlockall() != 0);
  printf("locked in the end %zu kB\n", locked_kib());
  CHECK(munmap(kept, MIB) == 0);
}

int main(void) {
  check_preloaded();
  set_limit(0);
  if (mlockall(MCL_CURRENT) == 0) {
    fprintf(stderr, "may lock any amount of memory\n");
    return 77;
  }
  said("mlockall with a limit of nothing", mlockall(MCL_CURRENT) != 0);
  char* memory = map(8 * MIB, 0);
  CHECK(memory != NULL);
  for (size_t at = 0; at < 8 * MIB; at += kPage) memory[at] = (char)(at / kPage % 127);
  said("mlock with a limit of nothing", mlock(memory, kPage) != 0);
  set_limit(2 * MIB);
  said("mlockall of more than the limit", mlockall(MCL_CURRENT) != 0);
  said("mlock of more than the limit", mlock(memory, 4 * MIB) != 0);
  said("mlock within the limit", mlock(memory + MIB, MIB) != 0);
  said("mlock of more, together", mlock(memory + 4 * MIB, 3 * MIB / 2) != 0);
  said("MAP_LOCKED of more than the limit", map(2 * MIB, MAP_LOCKED) == NULL);
  said("munlock", munlock(memory + MIB, MIB) != 0);
  said("mlock after it", mlock(memory + 4 * MIB, 3 * MIB / 2) != 0);
  said("munmap of a locked range", munmap(memory + 4 * MIB, 3 * MIB / 2) != 0);
  printf("locked %zu kB\n", locked_kib());
  future();
  int wrong = 0;
  for (size_t at = 0; at < 4 * MIB; at += kPage) wrong += memory[at] != (char)(at / kPage % 127);
  printf("wrong %d\n", wrong);
  return 0;
}
