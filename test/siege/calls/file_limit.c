// RLIMIT_FSIZE of 0, set while far memory is in use: the far file takes no more pages then, and they stay local. The
// program gets no SIGXFSZ for what it did not write, and the one that it gets for its own writes is its own.
#include "far_bytes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static volatile sig_atomic_t signals;
static void on_limit(int number) { signals += number == SIGXFSZ; }

int main(void) {
  check_preloaded();
  char name[] = "./limit-XXXXXX";
  int file = mkstemp(name);
  CHECK(file >= 0 && unlink(name) == 0);
  char* far = new_bytes();
  struct rlimit none = {0, RLIM_INFINITY};
  CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
  count_right("under the limit", far);
  char* more = new_bytes();
  count_right("more", more);
  count_right("the first", far);
  pid_t child = fork();
  if (child == 0) {
    count_right("in a child", far);
    count_right("its own", new_bytes());
    _exit(4);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  printf("child ended with %d\n", status);
  signal(SIGXFSZ, on_limit);
  show("its own write", write(file, "x", 1));
  printf("%d signals\n", (int)signals);
  count_right("at the end", far);
  return 0;
}
