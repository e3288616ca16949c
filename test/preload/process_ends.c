// The ways out of a process, and into another program: statuses, handlers, what is flushed; and what goes on when
// exec does not work, or happens in a vfork child.
#include "report.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { kPage = 4096, kPages = 3000 };

static char** g_arguments;
static unsigned char* g_memory;

static int all_right(void) {
  for (int page = 0; page < kPages; ++page)
    if (g_memory[(size_t)page * kPage] != (unsigned char)(page % 251)) return 0;
  return 1;
}

static int await(pid_t child) {
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void first(void) { write(1, "first handler\n", 14); }
static void second(void) {
  write(1, all_right() ? "second handler\n" : "wrong in the handler\n", all_right() ? 15 : 21);
}

static void end(int how) {
  atexit(first);
  atexit(second);
  at_quick_exit(first);
  at_quick_exit(second);
  printf("not flushed by all");  // no newline: only exit() writes it out
  switch (how) {
    case 0:
      exit(10);
    case 1:
      _exit(11);
    case 2:
      _Exit(12);
    case 3:
      quick_exit(13);
    case 4:
      syscall(SYS_exit_group, 14);
      break;
    default:
      abort();
  }
}

static void ends(void) {
  for (int how = 0; how < 6; ++how) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) end(how);
    int status = await(child);
    printf("|end %d: %d\n", how, status);
  }
}

static char* const kEnvironment[] = {"WITH=environment", NULL};

static void execute(int how, const char* path, int self) {
  char* words[] = {g_arguments[0], "said", "5", NULL};
  switch (how) {
    case 0:
      execl(path, words[0], words[1], words[2], NULL);
      break;
    case 1:
      execlp(path, words[0], words[1], words[2], NULL);
      break;
    case 2:
      execle(path, words[0], words[1], words[2], NULL, kEnvironment);
      break;
    case 3:
      execv(path, words);
      break;
    case 4:
      execvp(path, words);
      break;
    case 5:
      execve(path, words, kEnvironment);
      break;
    case 6:
      execvpe(path, words, kEnvironment);
      break;
    case 7:
      fexecve(self, words, kEnvironment);
      break;
    default:
      execveat(self, "", words, kEnvironment, AT_EMPTY_PATH);
      break;
  }
}

static void execs(void) {
  int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  CHECK(self >= 0);
  for (int how = 0; how < 9; ++how) {
    fflush(stdout);
    errno = 0;
    if (how < 7)
      execute(how, "/no/such/program", self);
    else
      execute(how, "", -1);
    printf("exec %d of nothing: errno %d, right %d\n", how, errno, all_right());
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      execute(how, "/no/such/program", -1);
      if (!all_right()) _exit(50);
      execute(how, "/proc/self/exe", self);
      _exit(51);
    }
    int by_fork = await(child);
    child = vfork();
    if (child == 0) {
      execute(how, "/proc/self/exe", self);
      _exit(52);
    }
    printf("exec %d: %d, by vfork %d, right %d\n", how, by_fork, await(child), all_right());
  }
  pid_t child = vfork();
  if (child == 0) {
    execute(0, "/no/such/program", -1);
    _exit(53);
  }
  printf("exec of nothing by vfork: %d, right %d\n", await(child), all_right());
  close(self);
}

int main(int count, char** arguments) {
  if (count == 3) {
    printf("executed, %s %s, environment %d\n", arguments[1], arguments[2], getenv("WITH") != NULL);
    return atoi(arguments[2]);
  }
  check_preloaded();
  g_arguments = arguments;
  g_memory = mmap(NULL, (size_t)kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(g_memory != MAP_FAILED);
  for (int page = 0; page < kPages; ++page) g_memory[(size_t)page * kPage] = (unsigned char)(page % 251);
  ends();
  execs();
  printf("at the end right %d\n", all_right());
  return 0;
}
