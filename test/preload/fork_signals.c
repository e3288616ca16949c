// Forks while timer signals arrive, whose handler has its stack in a mapping and writes to memory: neither the
// handler nor the kernel that writes the handler's frame may wait for a fork that waits for them.
#include "report.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { kStack = 1 << 18, kBytes = 4 << 20, kForks = 60 };

static volatile unsigned char* g_memory;
static volatile sig_atomic_t g_signals;

static void on_timer(int number) {
  (void)number;
  char frame[16384];  // more of the stack
  memset(frame, g_signals, sizeof frame);
  g_memory[(unsigned)g_signals * 40961u % kBytes] ^= frame[g_signals % sizeof frame] & 0;
  ++g_signals;
}

static unsigned char* map(size_t bytes) {
  unsigned char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  return memory;
}

static void handle_timers(void) {
  stack_t stack = {.ss_sp = map(kStack), .ss_size = kStack};
  CHECK(sigaltstack(&stack, NULL) == 0);
  struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_ONSTACK | SA_RESTART};
  CHECK(sigaction(SIGALRM, &action, NULL) == 0);
  struct itimerval often = {{0, 1500}, {0, 1500}};
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
}

int main(void) {
  check_preloaded();
  g_memory = map(kBytes);
  unsigned char* other = map(12 << 20);
  handle_timers();
  int wrong = 0;
  for (int i = 0; i < kForks; ++i) {
    memset(other, i, 12 << 20 >> (i % 3));  // pushes the stack out
    pid_t child;
    do child = fork();
    while (child < 0 && errno == EINTR);
    if (child == 0) _exit(other[0] == (unsigned char)i ? 0 : 1);
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    wrong += status != 0;
  }
  sigset_t now;
  sigprocmask(SIG_BLOCK, NULL, &now);
  printf("%d wrong, handler ran: %d, blocked afterwards: %d\n", wrong, g_signals > 0, sigismember(&now, SIGALRM));
  return 0;
}
