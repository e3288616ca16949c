// Children that share the parent's memory until they exec, or for good: vfork, posix_spawn, system, popen, clone.
#include "report.h"

#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

extern char** environ;
enum { kPage = 4096, kPages = 4096 };

static unsigned char* g_memory;
static char** g_arguments;

static unsigned sum(void) {
  unsigned all = 0;
  for (int page = 0; page < kPages; ++page) all = all * 31 + g_memory[(size_t)page * kPage + 7];
  return all;
}

static int await(pid_t child) {
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void by_vfork(void) {
  volatile unsigned seen = 0;  // a vfork's child writes into its parent's memory
  pid_t child = vfork();
  if (child == 0) {
    seen = sum();
    g_memory[5] = 99;
    execl("/proc/self/exe", g_arguments[0], "child", "3", NULL);
    _exit(100);
  }
  int status = await(child);
  printf("vfork and exec %d, saw all %d, wrote %d\n", status, seen == sum(), g_memory[5]);
}

static void by_spawn(void) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  CHECK(posix_spawn_file_actions_init(&actions) == 0 && posix_spawnattr_init(&attributes) == 0);
  CHECK(posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0) == 0);
  CHECK(posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP) == 0);
  char* arguments[] = {g_arguments[0], "child", "4", NULL};
  pid_t child = 0;
  printf("posix_spawn %d", posix_spawn(&child, "/proc/self/exe", &actions, &attributes, arguments, environ));
  printf(" %d\n", await(child));
  printf("posix_spawnp of nothing %d\n", posix_spawnp(&child, "/no/such/program", NULL, NULL, arguments, environ));
}

static void by_shell(void) {
  printf("system %d\n", WEXITSTATUS(system("exit 6")));
  FILE* out = popen("cat >/dev/null; echo done >&2", "w");
  CHECK(out != NULL);
  CHECK(fwrite(g_memory, kPage, kPages, out) == kPages);
  printf("popen, to it %d\n", pclose(out));
  FILE* in = popen("head -c 8000000 /dev/zero", "r");
  size_t got = fread(g_memory + 8 * kPage, 1, 9000000, in);
  printf("popen, from it %zu %d, zeros %d\n", got, pclose(in), g_memory[500 * kPage] == 0);
}

static int shares(void* argument) {
  g_memory[77 * kPage] = *(char*)argument;
  return sum() != 0 ? 8 : 9;
}

// Threads by another name: the child shares the memory, and far memory with it.
static void by_clone(void) {
  static char stack[256 * 1024] __attribute__((aligned(16)));
  char mark = 42;
  pid_t child = clone(shares, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &mark);
  printf("clone %d %d\n", await(child), g_memory[77 * kPage]);
}

int main(int count, char** arguments) {
  if (count == 3 && strcmp(arguments[1], "child") == 0) {
    check_preloaded();
    return atoi(arguments[2]);
  }
  check_preloaded();
  g_arguments = arguments;
  g_memory = mmap(NULL, (size_t)kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(g_memory != MAP_FAILED);
  for (size_t i = 0; i < (size_t)kPages * kPage; i += 7) g_memory[i] = (unsigned char)(i * 13 >> 4);
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (int round = 0; round < 3; ++round) {
    by_vfork();
    by_spawn();
    by_shell();
    by_clone();
    printf("sum %u\n", sum());
  }
  return 0;
}
