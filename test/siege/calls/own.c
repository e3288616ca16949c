// Programs whose run time makes its system calls by instructions of its own, as Go's and rustix do: threads,
// children, handlers, masks and a SIGSYS handler of theirs, all as natively.
#include "own.h"
#include "../../preload/report.h"

#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

#define PAGE 4096ul
#define PAGES 3072ul

static uint64_t word_of(size_t page, size_t salt) { return (page + 1) * 0x9e3779b97f4a7c15ull + salt; }

static void fill(char* at, size_t salt) {
  for (size_t i = 0; i < PAGES; ++i) *(uint64_t*)(at + i * PAGE) = word_of(i, salt);
}
static size_t right(const char* at, size_t pages, size_t salt) {
  size_t count = 0;
  for (size_t i = 0; i < pages; ++i) count += *(const uint64_t*)(at + i * PAGE) == word_of(i, salt);
  return count;
}
static size_t zero(const char* at, size_t pages) {
  size_t count = 0;
  for (size_t i = 0; i < pages; ++i) count += *(const uint64_t*)(at + i * PAGE) == 0;
  return count;
}

static char* own_map(void) {
  char* at = (char*)own_call(SYS_mmap, 0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK((long)at > 0);
  return at;
}

// What each thread and each child does: the counts are the same everywhere.
static size_t use_memory(size_t salt) {
  char* at = own_map();
  fill(at, salt);
  CHECK(OWN3(SYS_madvise, at, PAGES / 2 * PAGE, MADV_DONTNEED) == 0);
  size_t good = zero(at, PAGES / 2);
  fill(at, salt + 1);
  good += right(at, PAGES, salt + 1);
  char* to = (char*)OWN5(SYS_mremap, at, PAGES * PAGE, PAGES * 2 * PAGE, MREMAP_MAYMOVE, 0);
  CHECK((long)to > 0);
  good += right(to, PAGES, salt + 1);
  CHECK(OWN3(SYS_mprotect, to, PAGES * PAGE, PROT_READ) == 0);
  CHECK(OWN3(SYS_mprotect, to, PAGES * PAGE, PROT_READ | PROT_WRITE) == 0);
  CHECK(own_call(SYS_mmap, (long)(to + PAGE), PAGE * 100, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (long)(to + PAGE));
  good += zero(to + PAGE, 100);
  CHECK(OWN2(SYS_munmap, to, PAGES * 2 * PAGE) == 0);
  return good;
}
#define GOOD (PAGES / 2 + PAGES + PAGES + 100)

static void* on_thread(void* salt) { return (void*)use_memory((size_t)salt); }

static void threads(void) {
  pthread_t thread[4];
  for (size_t i = 0; i < 4; ++i) CHECK(pthread_create(&thread[i], NULL, on_thread, (void*)(i * 1000)) == 0);
  for (size_t i = 0; i < 4; ++i) {
    void* good;
    CHECK(pthread_join(thread[i], &good) == 0);
    printf("thread: %d\n", (size_t)good == GOOD);
  }
}

static void show_child(const char* what, long child) {
  int status = -1;
  CHECK(child > 0 && waitpid((pid_t)child, &status, 0) == child);
  printf("%s: %d\n", what, status);
  fflush(stdout);
}

// A child and its child, each made and ended by instructions; their memory is their own.
static void children(void) {
  char* at = own_map();
  fill(at, 7);
  fflush(stdout);
  long child = OWN1(SYS_fork, 0);
  if (child == 0) {
    size_t good = right(at, PAGES, 7) == PAGES;
    fill(at, 8);
    long grandchild = OWN5(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (grandchild == 0) {
      good += right(at, PAGES, 8) == PAGES;
      good += use_memory(3) == GOOD;
      OWN1(SYS_exit_group, good == 3 ? 0 : 1);
    }
    int status = -1;
    CHECK(OWN4(SYS_wait4, grandchild, &status, 0, 0) == grandchild);
    good += right(at, PAGES, 8) == PAGES;
    OWN1(SYS_exit_group, good == 2 ? status >> 8 : 9);
  }
  show_child("fork by instruction", child);
  printf("parent: %d\n", right(at, PAGES, 7) == PAGES);
  fflush(stdout);
  child = fork();
  if (child == 0) _exit(use_memory(5) == GOOD && right(at, PAGES, 7) == PAGES ? 0 : 1);
  show_child("fork", child);
  child = OWN1(SYS_vfork, 0);
  if (child == 0) {
    OWN3(SYS_close_range, 3, ~0u, 0);
    OWN1(SYS_exit_group, 3);
  }
  show_child("vfork", child);
  printf("parent: %d\n", right(at, PAGES, 7) == PAGES);
  CHECK(OWN2(SYS_munmap, at, PAGES * PAGE) == 0);
}

// Threads as Go makes them: with a stack of their own, they go on behind the instruction, with their parent's
// registers.
static _Atomic uint32_t g_thread_id;
static size_t g_thread_good;
static char* g_dropped;
static void bare_thread(void) {
  for (size_t i = 0; i < PAGES; ++i) *(uint64_t*)(g_dropped + i * PAGE) = 5;
  OWN3(SYS_madvise, g_dropped, PAGES * PAGE, MADV_DONTNEED);
  g_thread_good = zero(g_dropped, PAGES);
  OWN1(SYS_exit, 0);
}
__attribute__((noinline)) static long clone_bare(long number, const void* first, long second) {
  register _Atomic uint32_t* r10 __asm__("r10") = &g_thread_id;
  register void (*r8)(void) __asm__("r8") = bare_thread;
  long result;
  __asm__ volatile(
      "mov $0x1234567, %%r12d\n\t"
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "cmp $0x1234567, %%r12\n\t"
      "jne 2f\n\t"
      "call *%%r8\n"
      "2: ud2\n"
      "1:"
      : "=a"(result)
      : "a"(number), "D"(first), "S"(second), "d"(0l), "r"(r10), "r"(r8)
      : "rcx", "r11", "r12", "memory");
  return result;
}
static void bare(void) {
  enum { kStack = 256 << 10 };
  const uint64_t flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  char* stack = mmap(NULL, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  CHECK(stack != MAP_FAILED);
  g_dropped = own_map();
  for (int by_clone3 = 0; by_clone3 < 2; ++by_clone3) {
    struct clone_args arguments = {.flags = flags | CLONE_CHILD_CLEARTID,
                                   .child_tid = (uint64_t)&g_thread_id,
                                   .stack = (uint64_t)stack,
                                   .stack_size = kStack};
    atomic_store(&g_thread_id, 1);
    g_thread_good = 0;
    CHECK((by_clone3 ? clone_bare(SYS_clone3, &arguments, sizeof arguments)
                     : clone_bare(SYS_clone, (void*)(flags | CLONE_CHILD_CLEARTID), (long)stack + kStack)) > 0);
    while (atomic_load(&g_thread_id) != 0) OWN4(SYS_futex, &g_thread_id, 0 /* FUTEX_WAIT */, 1, 0);
    printf("bare thread: %d\n", g_thread_good == PAGES);
  }
  munmap(stack, kStack);
}

// Signals.
static volatile sig_atomic_t g_handled, g_code;
static int g_pipe[2];
static void on_signal(int number, siginfo_t* info, void* context) {
  (void)context;
  g_handled += OWN1(SYS_getpid, 0) == info->si_pid || info->si_pid == 0 ? number : 1000;
  g_code = info->si_code;
}
static void on_write(int number) {
  (void)number;
  OWN3(SYS_write, g_pipe[1], "x", 1);
}
static sigjmp_buf g_back;
static void on_leave(int number) { siglongjmp(g_back, number); }

// As run times have it: an own way back from handlers.
__attribute__((naked)) static void way_back(void) { __asm__("mov $15, %eax\n\tsyscall"); }
struct kernel_action {
  void* handler;
  unsigned long flags;
  void* restorer;
  uint64_t mask;
};
static void handlers(void) {
  struct kernel_action action = {on_signal, SA_SIGINFO | 0x04000000, way_back, ~0ull}, old = {0};
  CHECK(OWN4(SYS_rt_sigaction, SIGUSR1, &action, 0, 8) == 0);
  CHECK(OWN4(SYS_rt_sigaction, SIGUSR1, 0, &old, 8) == 0);
  printf("its mask: %lx\n", (unsigned long)old.mask);
  for (int i = 0; i < 3; ++i) CHECK(OWN2(SYS_kill, getpid(), SIGUSR1) == 0);
  printf("handled: %d\n", g_handled);
  uint64_t all = ~0ull, before = 1, after = 1, none = 0;
  CHECK(OWN4(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8) == 0);
  printf("mask: %lx", (unsigned long)before);
  CHECK(OWN2(SYS_kill, getpid(), SIGUSR1) == 0 && OWN2(SYS_kill, getpid(), SIGSYS) == 0);
  printf(" handled: %d memory: %d", g_handled, use_memory(11) == GOOD);
  CHECK(OWN4(SYS_rt_sigprocmask, SIG_SETMASK, &none, &after, 8) == 0);
  printf(" mask: %lx handled: %d\n", (unsigned long)after, g_handled);
}

static void masks(void) {
  sigset_t all, now;
  sigfillset(&all);
  CHECK(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0 && sigprocmask(SIG_BLOCK, NULL, &now) == 0);
  printf("blocks SIGSYS: %d, SIGUSR1: %d, memory: %d\n", sigismember(&now, SIGSYS), sigismember(&now, SIGUSR1),
         use_memory(12) == GOOD);
  CHECK(syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &all, NULL, 8) == 0);
  CHECK(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0);
  printf("blocks SIGSYS: %d, SIGUSR1: %d\n", sigismember(&now, SIGSYS), sigismember(&now, SIGUSR1));
  stack_t alternate = {malloc(64 << 10), 0, 64 << 10}, old = {0};
  CHECK(OWN2(SYS_sigaltstack, &alternate, &old) == 0 && OWN2(SYS_sigaltstack, 0, &alternate) == 0);
  printf("alternate stack: %d %d %zu\n", old.ss_flags, alternate.ss_flags, alternate.ss_size);
  alternate.ss_flags = SS_DISABLE;
  CHECK(OWN2(SYS_sigaltstack, &alternate, 0) == 0);
}

static void interrupted(void) {
  CHECK(pipe(g_pipe) == 0);
  struct sigaction action = {.sa_handler = on_write, .sa_flags = SA_RESTART};
  char byte = 0;
  sigaction(SIGALRM, &action, NULL);
  ualarm(20000, 0);
  printf("read goes on: %ld %c\n", OWN3(SYS_read, g_pipe[0], &byte, 1), byte);
  action.sa_flags = 0;
  sigaction(SIGALRM, &action, NULL);
  ualarm(20000, 0);
  printf("poll is interrupted: %ld\n", OWN3(SYS_poll, 0, 0, -1));
  printf("then there is: %ld\n", OWN3(SYS_read, g_pipe[0], &byte, 1));
  action.sa_handler = on_leave;
  sigaction(SIGALRM, &action, NULL);
  int left = sigsetjmp(g_back, 1);
  if (left == 0) {
    ualarm(20000, 0);
    OWN3(SYS_read, g_pipe[0], &byte, 1);
  }
  printf("left by signal %d, memory: %d\n", left, use_memory(13) == GOOD);
}

// Its own SIGSYS: what others send, and what its seccomp filter traps.
static void on_filtered(int number, siginfo_t* info, void* pointer) {
  (void)number;
  ucontext_t* context = pointer;
  g_code = info->si_code;
  if (info->si_code == 1 /* SYS_SECCOMP */) context->uc_mcontext.gregs[REG_RAX] = 4242;
  ++g_handled;
}
static void own_sigsys(void) {
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO}, old;
  sigfillset(&action.sa_mask);
  CHECK(sigaction(SIGSYS, &action, NULL) == 0 && sigaction(SIGSYS, NULL, &old) == 0);
  printf("handler is ours: %d, mask %d\n", old.sa_sigaction == on_signal, sigismember(&old.sa_mask, SIGSYS));
  g_handled = 0;
  raise(SIGSYS);
  printf("raised: %d, code %d\n", g_handled, g_code);
  handlers();
  action.sa_sigaction = on_filtered;
  CHECK(sigaction(SIGSYS, &action, NULL) == 0);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    struct sock_filter code[] = {{0x20, 0, 0, offsetof(struct seccomp_data, nr)},
                                 {0x15, 0, 1, SYS_getppid},
                                 {0x06, 0, 0, SECCOMP_RET_TRAP},
                                 {0x06, 0, 0, SECCOMP_RET_ALLOW}};
    struct sock_fprog program = {4, code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    g_handled = 0;
    long by_libc = getppid(), by_us = OWN1(SYS_getppid, 0);
    printf("trapped: %d, code %d, %ld %ld\n", g_handled, g_code, by_libc, by_us);
    fflush(stdout);
    _exit(0);
  }
  show_child("filtered", child);
  signal(SIGSYS, SIG_DFL);
  child = fork();
  if (child == 0) {
    raise(SIGSYS);
    _exit(1);
  }
  show_child("by default", child);
}

int main(void) {
  check_preloaded();
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  printf("memory: %d\n", use_memory(1) == GOOD);
  threads();
  children();
  bare();
  own_sigsys();
  masks();
  interrupted();
  threads();
  puts("done");
  return 0;
}
