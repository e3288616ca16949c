// Children by other calls than fork: clone() of libc, and clone, clone3 and fork through syscall(2), have their data.
// Those by a system call that libc does not make have it or are ended by a signal, and harm nobody; they never see
// zeros in the place of data.
#include "report.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { kPage = 4096, kPages = 6000 };

static unsigned char* g_memory;
static int* g_shared;  // between the processes: what a child found
static char* g_large;

static unsigned char expected(int page) { return (unsigned char)(page % 251 + 1); }

// 0: all is right, and stays so while the child writes.
static int look(void) {
  int wrong = 0;
  for (int page = 0; page < kPages; ++page) wrong += g_memory[(size_t)page * kPage + 5] != expected(page);
  for (int page = 0; page < kPages; page += 3) g_memory[(size_t)page * kPage + 5] = 255;
  for (int page = 0; page < kPages; ++page)
    wrong += g_memory[(size_t)page * kPage + 5] != (page % 3 == 0 ? 255 : expected(page));
  char* block = malloc(300000);
  memset(block, 3, 300000);
  free(block);
  return wrong != 0;
}

static int parent_is_right(void) {
  for (int page = 0; page < kPages; ++page)
    if (g_memory[(size_t)page * kPage + 5] != expected(page)) return 0;
  return 1;
}

static int await(pid_t child, int options) {
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, options) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void report(const char* name, int status) {
  printf("%s: child %d, parent %d\n", name, status, parent_is_right());
}

static void refused(const char* name, long result) { printf("%s: %ld errno %d\n", name, result, errno); }

static int on_its_stack(void* argument) {
  char here;
  char** range = argument;
  g_shared[1] = &here >= range[0] && &here < range[1];
  return look();
}

static void by_libc_clone(void) {
  const size_t bytes = 256 * 1024;
  char* stack = malloc(bytes);  // far, too
  char* range[2] = {stack, stack + bytes};
  g_shared[1] = 0;
  int status = await(clone(on_its_stack, stack + bytes - 3, SIGCHLD, range), 0);  // not aligned: libc sees to it
  report("clone", status);
  printf("on its own stack %d\n", g_shared[1]);
  pid_t there = 0;
  pid_t* child_id = malloc(sizeof *child_id);
  pid_t child =
      clone(on_its_stack, stack + bytes, SIGCHLD | CLONE_PARENT_SETTID | CLONE_FS, range, &there, NULL, child_id);
  printf("told the parent %d\n", there == child);
  report("clone with ids", await(child, 0));
  report("clone with CLONE_VFORK", await(clone(on_its_stack, stack + bytes, SIGCHLD | CLONE_VFORK, range), 0));
  report("clone without a signal", await(clone(on_its_stack, stack + bytes, 0, range), __WALL));
  errno = 0;
  refused("clone without a function", clone(NULL, stack + bytes, SIGCHLD, range));
  refused("clone without a stack", clone(on_its_stack, NULL, SIGCHLD, range));
  refused("clone of a thread", clone(on_its_stack, stack + bytes, SIGCHLD | CLONE_THREAD, range));
  free(child_id);
  free(stack);
}

static void by_syscall(void) {
  pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(look());
  report("syscall clone", await(child, 0));
  child = (pid_t)syscall(SYS_fork);
  if (child == 0) _exit(look());
  report("syscall fork", await(child, 0));

  pid_t* ids = calloc(2, sizeof *ids);
  child = (pid_t)syscall(SYS_clone, SIGCHLD | CLONE_CHILD_SETTID | CLONE_PARENT_SETTID, 0, &ids[0], &ids[1], 0);
  if (child == 0) _exit(ids[1] == (pid_t)syscall(SYS_gettid) ? look() : 77);
  printf("ids %d %d\n", ids[0] == child, ids[1]);
  report("syscall clone with ids", await(child, 0));

  int descriptor = -1;
  child = (pid_t)syscall(SYS_clone, SIGCHLD | CLONE_PIDFD, 0, &descriptor, 0, 0);
  if (child == 0) _exit(look());
  siginfo_t info;
  memset(&info, 0, sizeof info);
  printf("by its descriptor %d", waitid(P_PIDFD, (id_t)descriptor, &info, WEXITED | WNOWAIT));
  printf(" %d\n", info.si_pid == child);
  close(descriptor);
  report("syscall clone with a descriptor", await(child, 0));
  free(ids);
}

static void by_clone3(void) {
  struct clone_args* arguments = calloc(1, sizeof *arguments);
  pid_t* id = calloc(1, sizeof *id);
  arguments->exit_signal = SIGCHLD;
  arguments->flags = CLONE_PARENT_SETTID;
  arguments->parent_tid = (uintptr_t)id;
  pid_t child = (pid_t)syscall(SYS_clone3, arguments, sizeof *arguments);
  if (child == 0) _exit(look());
  if (child < 0) {
    printf("clone3 errno %d\n", errno);  // a filter of system calls that refuses it
  } else {
    printf("clone3 id %d\n", *id == child);
    report("clone3", await(child, 0));
  }
  errno = 0;
  refused("clone3 of nothing", syscall(SYS_clone3, NULL, 0));
  arguments->flags = CLONE_SIGHAND;
  refused("clone3 of a thread", syscall(SYS_clone3, arguments, sizeof *arguments));
  free(arguments);
  free(id);
}

// The system call itself, which nothing between here and the kernel sees.
static long raw_fork(void) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_fork) : "rcx", "r11", "memory");
  return result;
}

// 0: yes.
static int pages_are_wrong(void) {
  for (int page = 0; page < kPages; ++page) {
    unsigned char byte = ((volatile unsigned char*)g_memory)[(size_t)page * kPage + 5];
    if (byte != expected(page)) return 1;  // zeros, or worse
  }
  return 0;
}

static int right_or_ended(int status) { return status == 0 || status == 1000 + SIGSEGV || status == 1000 + SIGBUS; }

static void by_raw_call(void) {
  pid_t child = (pid_t)raw_fork();
  if (child == 0) _exit(pages_are_wrong());
  printf("raw: right or ended %d, parent %d\n", right_or_ended(await(child, 0)), parent_is_right());

  // What it gives back and maps is its own: the parent's is as it was. (Without far memory it may, or is ended.)
  child = (pid_t)raw_fork();
  if (child == 0) {
    free(g_large);
    munmap(g_memory, (size_t)kPages / 2 * kPage);
    madvise(g_memory + (size_t)kPages / 2 * kPage, (size_t)kPages / 2 * kPage, MADV_DONTNEED);
    mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    _exit(0);
  }
  await(child, 0);
  int large = 1;
  for (int i = 0; i < 4 << 20; i += kPage) large &= g_large[i] == 9;
  printf("raw, and unmaps: parent %d %d\n", parent_is_right(), large);

  child = (pid_t)raw_fork();
  if (child == 0) {
    static char* arguments[] = {"x", "child", NULL};
    static char* environment[] = {NULL};
    execve("/proc/self/exe", arguments, environment);
    _exit(9);
  }
  printf("raw, and executes %d\n", await(child, 0));

  // Ours works after all that, also while pages that the program keeps from its children split the mapping.
  CHECK(madvise(g_memory + 64 * kPage, 64 * kPage, MADV_DONTFORK) == 0);
  child = (pid_t)raw_fork();
  if (child == 0) _exit(g_memory[5] != expected(0));
  printf("raw, after DONTFORK %d\n", right_or_ended(await(child, 0)));
  child = fork();
  if (child == 0)
    _exit(g_memory[5] != expected(0) || g_memory[(size_t)(kPages - 1) * kPage + 5] != expected(kPages - 1));
  printf("fork, after DONTFORK %d\n", await(child, 0));
  CHECK(madvise(g_memory + 64 * kPage, 64 * kPage, MADV_DOFORK) == 0);
  child = fork();
  if (child == 0) _exit(look());
  report("fork, after DOFORK", await(child, 0));
}

static volatile int g_thread_ran;
static int end_thread(void* ignored) {
  (void)ignored;
  g_thread_ran = 1;
  syscall(SYS_exit, 0);  // this thread alone
  return 0;
}

static void by_exits(void) {
  static char stack[64 * 1024] __attribute__((aligned(16)));
  static volatile int alive;
  g_thread_ran = 0;
  alive = 1;
  const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_CHILD_CLEARTID;
  CHECK(clone(end_thread, stack + sizeof stack, flags, NULL, NULL, NULL, (void*)&alive) > 0);
  while (alive) usleep(1000);
  printf("a thread by clone ended alone %d\n", g_thread_ran);
  pid_t child = fork();
  if (child == 0) syscall(SYS_exit, 21);
  printf("syscall exit %d\n", await(child, 0));
  child = fork();
  if (child == 0) syscall(SYS_exit_group, 22);
  printf("syscall exit_group %d\n", await(child, 0));
}

// Other system calls pass as they are, all six arguments and errors.
static void others_pass(void) {
  char* at = (char*)syscall(SYS_mmap, NULL, 8192L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1L, 0L);
  CHECK((intptr_t)at > 0);
  at[8191] = 1;
  printf("munmap %ld\n", syscall(SYS_munmap, at, 8192L));
  errno = 0;
  refused("close", syscall(SYS_close, -1));
  printf("getpid %d\n", syscall(SYS_getpid) == getpid());
}

int main(int count, char** arguments) {
  (void)arguments;
  if (count == 2) return 5;
  check_preloaded();
  setvbuf(stdout, NULL, _IOLBF, 0);
  g_shared = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  g_memory = mmap(NULL, (size_t)kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(g_memory != MAP_FAILED && g_shared != MAP_FAILED);
  for (int page = 0; page < kPages; ++page) g_memory[(size_t)page * kPage + 5] = expected(page);
  g_large = malloc(4 << 20);
  memset(g_large, 9, 4 << 20);
  for (int round = 0; round < 2; ++round) {
    by_libc_clone();
    by_syscall();
    by_clone3();
    by_raw_call();
    by_exits();
    others_pass();
  }
  return 0;
}
