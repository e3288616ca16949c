// pthread_atfork: order, handlers that allocate and print, handlers that register more, daemon(), forkpty().
#include "report.h"

#include <pthread.h>
#include <pty.h>
#include <sys/wait.h>

static int g_registered_more = 0;

#define HANDLERS(name)                                                \
  static void prepare_##name(void) { printf("prepare " #name "\n"); } \
  static void parent_##name(void) { printf("parent " #name "\n"); }   \
  static void child_##name(void) {                                    \
    char* block = malloc(1 << 20);                                    \
    memset(block, 1, 1 << 20);                                        \
    printf("child " #name "\n");                                      \
    free(block);                                                      \
  }
HANDLERS(a)
HANDLERS(b)
HANDLERS(late)

static void prepare_more(void) {
  printf("prepare more\n");
  if (g_registered_more++ == 0) CHECK(pthread_atfork(prepare_late, parent_late, child_late) == 0);
}

static void fork_once(const char* what) {
  printf("-- %s\n", what);
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    printf("in child\n");
    fflush(stdout);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  fflush(stdout);
}

static void plain_fork(void) {
  printf("-- _Fork\n");
  fflush(stdout);
  pid_t child = _Fork();
  if (child == 0) {
    CHECK(write(1, "in child\n", 9) == 9);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child);
}

static void be_daemon(void) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    pid_t before = getpid();
    CHECK(daemon(0, 0) == 0);
    char where[100], text[200];
    CHECK(getcwd(where, sizeof where) != NULL);
    int length = snprintf(text, sizeof text, "daemon in %s, new process %d, leads its session %d\n", where,
                          getpid() != before, getsid(0) == getpid());
    CHECK(write(ends[1], text, (size_t)length) == length);
    _exit(0);
  }
  close(ends[1]);
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  char text[200] = "";
  CHECK(read(ends[0], text, sizeof text - 1) > 0);
  printf("%s", text);
}

static void on_a_terminal(void) {
  int controller;
  fflush(stdout);
  pid_t child = forkpty(&controller, NULL, NULL, NULL);
  if (child < 0) {
    printf("no terminals here\n");
    return;
  }
  if (child == 0) {
    CHECK(write(1, isatty(0) && isatty(1) ? "T" : "F", 1) == 1);
    _exit(5);
  }
  char answer = '?';
  CHECK(read(controller, &answer, 1) == 1);
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  printf("forkpty %c %d\n", answer, WEXITSTATUS(status));
}

int main(void) {
  check_preloaded();
  CHECK(pthread_atfork(prepare_a, parent_a, child_a) == 0);
  CHECK(pthread_atfork(NULL, NULL, NULL) == 0);
  CHECK(pthread_atfork(prepare_b, parent_b, NULL) == 0 && pthread_atfork(NULL, NULL, child_b) == 0);
  fork_once("two");
  CHECK(pthread_atfork(prepare_more, NULL, NULL) == 0);
  fork_once("registers more");
  fork_once("with the later one");
  plain_fork();
  be_daemon();
  on_a_terminal();
  return 0;
}
