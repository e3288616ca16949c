// Programs that close every descriptor they could have: results are as if the runtime had none, and allocation and
// fork still work afterwards.
#include "report.h"

#include <fcntl.h>
#include <sys/wait.h>

static void use_memory(void) {
  for (int i = 0; i < 100; ++i) {
    char* block = malloc(100000);
    memset(block, 1, 100000);
    free(block);
  }
}

int main(void) {
  check_preloaded();
  for (int descriptor = 3; descriptor < 1100; ++descriptor) {
    errno = 0;
    int result = close(descriptor);
    if (result != -1 || errno != EBADF) printf("close(%d) = %d errno %d\n", descriptor, result, errno);
  }
  use_memory();
  for (int descriptor = 600; descriptor < 800; ++descriptor) {
    int copy = dup2(descriptor, 20);
    if (copy != -1 || errno != EBADF) printf("dup2(%d, 20) = %d errno %d\n", descriptor, copy, errno);
    copy = dup3(descriptor, 20, 0);
    if (copy != -1 || errno != EBADF) printf("dup3(%d, 20) = %d errno %d\n", descriptor, copy, errno);
  }
  int file = open("/dev/null", O_RDONLY);
  printf("next descriptor %d\n", file);
  printf("dup2 %d\n", dup2(file, 100));
  printf("dup3 same %d errno %d\n", dup3(file, file, 0), errno);
  printf("close_range %d\n", close_range(3, ~0u, 0));
  printf("fd 100 closed %d\n", fcntl(100, F_GETFD) == -1);
  printf("close_range backwards %d errno %d\n", close_range(10, 3, 0), errno);
  printf("close_range bad flags %d errno %d\n", close_range(3, 10, 1 << 20), errno);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    closefrom(3);
    use_memory();
    _exit(17);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  printf("child %d\n", WEXITSTATUS(status));
  use_memory();
  return 0;
}
