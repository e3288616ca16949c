// A program that gives its privileges away, as servers do, and then forks. Its children may not open what paging
// needs: while nothing is far they need not, and afterwards they have it from what their parent opened before.
#include "report.h"

#include <sys/mman.h>
#include <sys/wait.h>

enum { kPage = 4096, kPages = 2000, kUser = 65534 };

static int await(pid_t child) {
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int right(const unsigned char* memory) {
  for (int page = 0; page < kPages; ++page)
    if (memory[(size_t)page * kPage] != (unsigned char)(page % 251)) return 0;
  return 1;
}

int main(void) {
  check_preloaded();
  if (geteuid() != 0) {
    fprintf(stderr, "needs root, to become another user\n");
    return 77;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  unsigned char* memory =
      mmap(NULL, (size_t)kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  for (int page = 0; page < kPages; ++page) memory[(size_t)page * kPage] = (unsigned char)(page % 251);
  CHECK(setgid(kUser) == 0 && setuid(kUser) == 0);
  for (int round = 0; round < 3; ++round) {
    pid_t child = fork();
    if (child == 0) {
      char* more = malloc(5 << 20);
      memset(more, 3, 5 << 20);
      pid_t grandchild = fork();
      if (grandchild == 0) _exit(right(memory) && more[4 << 20] == 3 ? 0 : 1);
      int below = await(grandchild);
      free(more);
      _exit(below == 0 && right(memory) ? 0 : 1);
    }
    printf("child %d, right %d\n", await(child), right(memory));
  }
  return 0;
}
