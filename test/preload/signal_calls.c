// signal() and its kin by their results: for a signal that the library may watch (--core) and for one that it never
// does.
#include "report.h"

#include <signal.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // sigset

typedef void (*Handler)(int);

static volatile sig_atomic_t g_taken;
static void first(int number) { g_taken += number; }
static void second(int number) { g_taken += 1000 * number; }

static const char* name_of(Handler handler) {
  if (handler == SIG_DFL) return "default";
  if (handler == SIG_IGN) return "ignored";
  if (handler == SIG_ERR) return "error";
  return handler == first ? "first" : handler == second ? "second" : "somebody else's";
}

// What sigaction says of it; the library's own flags and mask must not show.
static void show(const char* call, int number, Handler before) {
  struct sigaction now;
  CHECK(sigaction(number, NULL, &now) == 0);
  printf("%s(%d): before %s, now %s, flags %#x, blocks itself %d\n", call, number, name_of(before),
         name_of(now.sa_handler), (unsigned)now.sa_flags & ~0x04000000u, sigismember(&now.sa_mask, number));
}

static void use(const char* call, Handler (*set)(int, Handler), int number) {
  show(call, number, set(number, first));
  raise(number);
  printf("taken %d\n", (int)g_taken);
  show(call, number, set(number, second));
  raise(number);
  printf("taken %d\n", (int)g_taken);
  show(call, number, set(number, SIG_IGN));
  raise(number);
  show(call, number, set(number, SIG_DFL));
  errno = 0;
  Handler refused = set(number, SIG_ERR);
  printf("%s(SIG_ERR): %s errno %d\n", call, name_of(refused), errno);
  errno = 0;
  refused = set(SIGKILL, first);
  printf("%s(SIGKILL): %s errno %d\n", call, name_of(refused), errno);
}

int main(void) {
  check_preloaded();
  int numbers[] = {SIGQUIT, SIGUSR1};
  for (int i = 0; i < 2; ++i) {
    use("signal", signal, numbers[i]);
    use("ssignal", ssignal, numbers[i]);
    use("sysv_signal", sysv_signal, numbers[i]);
    use("__sysv_signal", __sysv_signal, numbers[i]);
    show("sigset", numbers[i], sigset(numbers[i], first));
    show("sigset", numbers[i], sigset(numbers[i], SIG_DFL));
  }
  struct sigaction action = {.sa_handler = SIG_DFL, .sa_flags = SA_RESTART | SA_NODEFER}, old;
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGSEGV, NULL, &old) == 0);
  show("sigaction", SIGSEGV, old.sa_handler);
  errno = 0;
  int result = sigaction(SIGKILL, &action, NULL);
  printf("sigaction(SIGKILL): %d errno %d\n", result, errno);
  return 0;
}
