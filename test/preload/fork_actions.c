// fork in a process whose other threads change the actions of signals all the time: the child can do that, too.
#include "report.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

enum { kThreads = 2, kForks = 100 };

static int g_stop = 0;

static void on_signal(int number) { (void)number; }

// SIGBUS and SIGQUIT are among those that the library may have handlers for.
static void change_actions(void) {
  struct sigaction action = {.sa_handler = on_signal}, old;
  CHECK(sigaction(SIGBUS, &action, NULL) == 0);
  CHECK(sigaction(SIGQUIT, &action, NULL) == 0);
  action.sa_handler = SIG_DFL;
  CHECK(sigaction(SIGQUIT, &action, &old) == 0);
  CHECK(sigaction(SIGBUS, NULL, &old) == 0 && old.sa_handler == on_signal);
}

static void* busy(void* argument) {
  while (!__atomic_load_n(&g_stop, __ATOMIC_RELAXED)) change_actions();
  return argument;
}

// A child that waits for ever blocks all signals.
static int ends_well(pid_t child, int expected) {
  int status = 0;
  for (int looks = 0; waitpid(child, &status, WNOHANG) == 0; ++looks) {
    if (looks == 30000) kill(child, SIGKILL);
    nanosleep(&(struct timespec){0, 1000000}, NULL);
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == expected;
}

int main(void) {
  check_preloaded();
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_create(&threads[i], NULL, busy, NULL) == 0);
  int wrong = 0;
  for (int i = 0; i < kForks && wrong == 0; ++i) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      change_actions();
      _exit(i % 100);
    }
    wrong += !ends_well(child, i % 100);
  }
  __atomic_store_n(&g_stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  printf("%d wrong\n", wrong);
  return 0;
}
