// A program's own signals: handlers of SIGSEGV and SIGBUS with their addresses, alternate stacks, masks, interrupted
// system calls, waiting for signals. All while its memory passes through the budget.
#include "common.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

static sigjmp_buf g_back;
static int g_code_told = 1;
static volatile int g_signal, g_code, g_on_stack, g_counts[65];
static void* volatile g_address;
static char* g_stack;
static volatile char* volatile g_nowhere = (volatile char*)(uintptr_t)16;
enum { kStack = 256 << 10 };

static void on_fault(int number, siginfo_t* info, void* context) {
  char here;
  (void)context;
  g_signal = number;
  g_code = info->si_code;
  g_address = info->si_addr;
  g_on_stack = &here >= g_stack && &here < g_stack + kStack;
  siglongjmp(g_back, 1);
}

static void count_signal(int number) { ++g_counts[number]; }

static void handle(int number, void (*plain)(int), void (*informed)(int, siginfo_t*, void*), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  if (informed != NULL) {
    action.sa_sigaction = informed;
    flags |= SA_SIGINFO;
  } else {
    action.sa_handler = plain;
  }
  action.sa_flags = flags;
  CHECK(sigaction(number, &action, NULL) == 0);
}

// What a touch raises, and where: `expected` is the address that must be reported.
#define TOUCH(what, access, expected)                                                                            \
  do {                                                                                                           \
    g_signal = 0;                                                                                                \
    push_out();                                                                                                  \
    if (sigsetjmp(g_back, 1) == 0) access;                                                                       \
    printf("%-28s signal %d, code %d, the address %d, own stack %d\n", what, g_signal, g_code_told ? g_code : 0, \
           g_signal == 0 || g_address == (void*)(expected), g_on_stack);                                         \
  } while (0)

static void faults(void) {
  g_stack = malloc(kStack);  // an alternate stack in far memory
  stack_t stack = {.ss_sp = g_stack, .ss_size = kStack}, before;
  CHECK(sigaltstack(&stack, &before) == 0);
  printf("no alternate stack before %d\n", before.ss_flags == SS_DISABLE);
  handle(SIGSEGV, NULL, on_fault, SA_ONSTACK);
  handle(SIGBUS, NULL, on_fault, SA_ONSTACK);
  char* memory = big_mmap(4 * 4096);
  memset(memory, 1, 4 * 4096);
  volatile char* page = memory + 4096 + 100;
  CHECK(mprotect(memory + 4096, 4096, PROT_READ) == 0);
  TOUCH("write to read-only", *page = 2, page);
  TOUCH("read of read-only", (void)*page, page);
  CHECK(mprotect(memory + 4096, 4096, PROT_NONE) == 0);
  TOUCH("read of nothing allowed", (void)*page, page);
  CHECK(mprotect(memory + 4096, 4096, PROT_READ | PROT_WRITE) == 0);
  TOUCH("allowed again", *page = (char)(*page + 1), page);
  printf("content %d\n", *page);
  CHECK(munmap(memory + 2 * 4096, 4096) == 0);
  volatile char* gone = memory + 2 * 4096 + 7;
  g_code_told = 0;  // the window is reserved: SEGV_ACCERR where it natively is SEGV_MAPERR (documented)
  TOUCH("write to unmapped", *gone = 1, gone);
  g_code_told = 1;
  TOUCH("null", *g_nowhere = 1, g_nowhere);
  int file = scratch_file(0);
  CHECK(ftruncate(file, 4096) == 0);
  volatile char* mapped = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  TOUCH("beyond a file's end", mapped[5000] = 1, mapped + 5000);
  // A file put over far memory.
  CHECK(mmap(memory, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 4096) == memory);
  TOUCH("beyond it in the window", *(volatile char*)memory = 1, memory);
  volatile double* misplaced = (volatile double*)(uintptr_t)0x8000000000000000u;
  TOUCH("no address at all", *misplaced = 1, NULL);
  int ends[2];
  CHECK(pipe(ends) == 0);
  ssize_t written = write(ends[1], (void*)gone, 1);
  printf("system call with a bad buffer %zd, %d\n", written, errno);
  close(ends[0]);
  close(ends[1]);
  stack.ss_flags = SS_DISABLE;
  CHECK(sigaltstack(&stack, &before) == 0);
  printf("the alternate stack was ours %d\n", before.ss_sp == g_stack && before.ss_size == kStack);
  close(file);
}

// Pages are made accessible by the handler, as garbage collectors and persistent heaps do.
static char* g_guarded;
static volatile int g_opened;
static void open_page(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  CHECK(mprotect((void*)((uintptr_t)info->si_addr & ~4095ul), 4096, PROT_READ | PROT_WRITE) == 0);
  ++g_opened;
}

static void write_barrier(void) {
  enum { kPages = 2000 };
  g_guarded = big_mmap(kPages * 4096);
  fill(g_guarded, kPages * 4096, 1);
  handle(SIGSEGV, NULL, open_page, 0);
  CHECK(mprotect(g_guarded, kPages * 4096, PROT_READ) == 0);
  for (int i = 0; i < kPages; i += 3) g_guarded[(size_t)i * 4096 + 9] ^= 0x55;
  for (int i = 0; i < kPages; i += 3) g_guarded[(size_t)i * 4096 + 9] ^= 0x55;
  printf("opened %d, wrong words %zu\n", g_opened, wrong_words(g_guarded, kPages * 4096, 1));
  signal(SIGSEGV, SIG_DFL);
}

static void* blocked_set_of_a_thread(void* argument) {
  sigset_t* set = argument;
  pthread_sigmask(SIG_BLOCK, NULL, set);
  return NULL;
}

static void masks(void) {
  sigset_t some, seen;
  sigemptyset(&some);
  sigaddset(&some, SIGUSR2);
  sigaddset(&some, SIGALRM);
  sigaddset(&some, SIGRTMIN + 3);
  pthread_sigmask(SIG_BLOCK, &some, NULL);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, blocked_set_of_a_thread, &seen) == 0 && pthread_join(thread, NULL) == 0);
  printf("inherited:");
  for (int i = 1; i <= SIGRTMAX; ++i)
    if (sigismember(&seen, i) == 1) printf(" %d", i);
  // Blocked in every thread of the program: it must stay pending, and not be taken by one that the program does not
  // know.
  handle(SIGUSR2, count_signal, NULL, 0);
  CHECK(kill(getpid(), SIGUSR2) == 0);
  push_out();
  nanosleep(&(struct timespec){0, 20000000}, NULL);
  sigset_t pending;
  sigpending(&pending);
  printf("\npending %d, handled %d\n", sigismember(&pending, SIGUSR2), g_counts[SIGUSR2]);
  pthread_sigmask(SIG_UNBLOCK, &some, NULL);
  printf("handled %d\n", g_counts[SIGUSR2]);
  // The dispositions that the program did not change are the default ones.
  printf("default:");
  for (int i = 1; i <= SIGRTMAX; ++i) {
    struct sigaction action;
    if (sigaction(i, NULL, &action) != 0) continue;
    if (action.sa_handler != SIG_DFL || action.sa_flags != 0) printf(" not %d", i);
  }
  printf("\n");
}

static pthread_t g_main;
static void* interrupt_main(void* argument) {
  for (int i = 0; i < *(int*)argument; ++i) {
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    pthread_kill(g_main, SIGUSR1);
  }
  return NULL;
}

struct Ends {
  int read_end;
  int write_end;
};
static void* write_late(void* argument) {
  struct Ends* ends = argument;
  nanosleep(&(struct timespec){0, 200000000}, NULL);
  CHECK(write(ends->write_end, "late", 4) == 4);
  return NULL;
}

// Not interrupted without a signal, however much paging goes on meanwhile; interrupted by one, or restarted, as
// asked.
static void interrupted(void) {
  g_main = pthread_self();
  int one = 1, many = 5;
  struct Ends ends;
  int both[2];
  CHECK(pipe(both) == 0);
  ends = (struct Ends){both[0], both[1]};
  char* buffer = big_mmap(kMiB);
  pthread_t thread, writer;
  for (int restart = 0; restart < 2; ++restart) {
    handle(SIGUSR1, count_signal, NULL, restart ? SA_RESTART : 0);
    g_counts[SIGUSR1] = 0;
    push_out();
    CHECK(pthread_create(&writer, NULL, write_late, &ends) == 0);
    CHECK(pthread_create(&thread, NULL, interrupt_main, restart ? &many : &one) == 0);
    ssize_t got = read(both[0], buffer, kMiB);
    int error = got < 0 ? errno : 0;
    pthread_join(thread, NULL);
    if (got < 0) got = read(both[0], buffer, kMiB);
    pthread_join(writer, NULL);
    // Signals that come while one is pending are one: how many there are depends on the scheduler.
    printf("restart %d: error %d, got %zd, signals %d\n", restart, error, got, g_counts[SIGUSR1] > 0);
  }
  handle(SIGUSR1, count_signal, NULL, SA_RESTART);
  struct timespec* left = (struct timespec*)buffer;
  push_out();
  CHECK(pthread_create(&thread, NULL, interrupt_main, &one) == 0);
  int result = nanosleep(&(struct timespec){0, 300000000}, left);
  printf("nanosleep %d, %d, left %d\n", result, result < 0 ? errno : 0, left->tv_sec == 0 && left->tv_nsec > 1000000);
  pthread_join(thread, NULL);
  int queue = epoll_create1(0);
  CHECK(pthread_create(&thread, NULL, interrupt_main, &one) == 0);
  result = epoll_wait(queue, (struct epoll_event*)buffer, 10, 300);
  printf("epoll_wait %d, %d\n", result, result < 0 ? errno : 0);
  pthread_join(thread, NULL);
  result = epoll_wait(queue, (struct epoll_event*)buffer, 10, 40);
  printf("epoll_wait %d\n", result);
  close(queue);
}

static void waits(void) {
  sigset_t* set = malloc(sizeof *set);
  sigemptyset(set);
  sigaddset(set, SIGUSR1);
  sigaddset(set, SIGRTMIN);
  pthread_sigmask(SIG_BLOCK, set, NULL);
  CHECK(kill(getpid(), SIGUSR1) == 0);
  int* number = malloc(sizeof *number);
  push_out();
  int result = sigwait(set, number);
  printf("sigwait %d, %d\n", result, *number);
  for (int i = 0; i < 3; ++i) CHECK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 40 + i}) == 0);
  siginfo_t* info = malloc(sizeof *info);
  push_out();
  result = sigtimedwait(set, info, &(struct timespec){1, 0});
  printf("sigtimedwait %d, value %d\n", result == SIGRTMIN, info->si_value.sival_int);
  int descriptor = signalfd(-1, set, SFD_CLOEXEC);
  struct signalfd_siginfo* read_info = big_mmap(4096);
  push_out();
  ssize_t got = read(descriptor, read_info, 4096);
  printf("signalfd %zd, values %d %d\n", got, read_info[0].ssi_int, read_info[1].ssi_int);
  close(descriptor);
  result = sigtimedwait(set, info, &(struct timespec){0, 1000000});
  printf("nobody comes %d, %d\n", result, errno);
  pthread_sigmask(SIG_UNBLOCK, set, NULL);
}

static void timers(void) {
  g_counts[SIGALRM] = 0;
  handle(SIGALRM, count_signal, NULL, SA_RESTART);
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
  CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  struct itimerspec every = {.it_interval = {0, 500000}, .it_value = {0, 500000}};
  CHECK(timer_settime(timer, 0, &every, NULL) == 0);
  // Handlers run in the middle of everything, faults included.
  char* memory = big_mmap(8 * kMiB);
  for (uint64_t round = 0; round < 6; ++round) {
    fill(memory, 8 * kMiB, round);
    CHECK(wrong_words(memory, 8 * kMiB, round) == 0);
  }
  CHECK(timer_delete(timer) == 0);
  printf("timers %d\n", g_counts[SIGALRM] > 5);
  munmap(memory, 8 * kMiB);
}

// Ends by each signal as natively.
static void deaths(void) {
  static const int kDeaths[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGQUIT, SIGTERM, SIGUSR1, SIGTRAP};
  for (size_t i = 0; i < sizeof kDeaths / sizeof kDeaths[0]; ++i) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      signal(kDeaths[i], SIG_DFL);
      if (kDeaths[i] == SIGABRT) abort();
      if (kDeaths[i] == SIGSEGV) *g_nowhere = 1;
      kill(getpid(), kDeaths[i]);
      for (;;) pause();
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    printf("death by %d: %d\n", kDeaths[i], WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status));
  }
}

int main(void) {
  check_preloaded();
  masks();
  faults();
  write_barrier();
  interrupted();
  waits();
  timers();
  deaths();
  return 0;
}
