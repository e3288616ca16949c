// A program gives up what it may do, as servers and sandboxes do once they have begun, and then goes on: takes
// memory, starts threads, forks. Each way is a child of its own. As natively, and no byte of far memory is lost.
#include "../calls/far_bytes.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void* look(void* at) {
  count_right("in a thread", at);
  return NULL;
}

static void wait_for(pid_t child) {
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  printf("child ended with %d\n", status);
}

static void be_child(char* inherited) {
  count_right("in a child", inherited);
  char* own = new_bytes();
  pid_t child = fork();
  if (child == 0) {
    count_right("in a grandchild", own);
    count_right("what it inherited", inherited);
    _exit(6);
  }
  wait_for(child);
  count_right("its own", own);
  _exit(5);
}

// What a program does all day.
static void go_on(char* far, int forks) {
  count_right("after it", far);
  char* more = new_bytes();
  count_right("more", more);
  for (int i = 0; i < forks; ++i) {
    pid_t child = fork();
    if (child == 0) be_child(far);
    wait_for(child);
  }
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, look, far) == 0 && pthread_join(thread, NULL) == 0);
  CHECK(mremap(more, PAGES * PAGE, PAGES * PAGE / 2, 0) == more);
  CHECK(munmap(more, PAGES * PAGE / 2) == 0);
  count_right("at the end", far);
}

static int drop_user(void) { return setgid(65534) != 0 || setuid(65534) != 0; }
static int drop_user_later(void) {
  if (setresuid(65534, 65534, 0) != 0) return 1;
  return prctl(PR_SET_DUMPABLE, 0) != 0;
}
static int hide(void) { return prctl(PR_SET_DUMPABLE, 0) != 0; }
static int new_root(void) {
  char name[] = "/tmp/confined-XXXXXX";
  if (mkdtemp(name) == NULL) return 1;
  int failed = chroot(name) != 0 || chdir("/") != 0;
  return failed;
}
static int no_descriptors(void) {
  struct rlimit none = {3, 3};
  return setrlimit(RLIMIT_NOFILE, &none) != 0;
}
static int few_signals(void) {
  struct rlimit few = {4, 4};
  return setrlimit(RLIMIT_SIGPENDING, &few) != 0;
}
static int land(void) {
  struct landlock_ruleset_attr all = {.handled_access_fs = (1 << 13) - 1};
  int rules = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
  if (rules < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 1;
  if (syscall(SYS_landlock_restrict_self, rules, 0) != 0) return 1;
  close(rules);
  return 0;
}
static int own_mounts(void) { return unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) != 0; }
static int own_table(void) { return unshare(CLONE_FILES | CLONE_FS) != 0; }
static int no_proc(void) {
  if (unshare(CLONE_NEWNS) != 0) return 1;
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return 1;
  return mount("none", "/proc", "tmpfs", 0, NULL) != 0 || mount("none", "/dev", "tmpfs", 0, NULL) != 0;
}

// Calls that open something, or connect, fail as a sandbox has them fail.
static int filter(int answer, int whole) {
  static const int refused[] = {SYS_open,           SYS_openat,         SYS_openat2, SYS_socket,
                                SYS_connect,        SYS_userfaultfd,    SYS_execve,  SYS_ptrace,
                                SYS_pidfd_open,     SYS_pidfd_getfd,    SYS_kcmp,    SYS_memfd_create,
                                SYS_io_uring_setup, SYS_perf_event_open};
  enum { kRefused = sizeof refused / sizeof *refused };
  struct sock_filter code[2 * kRefused + 2];
  int at = 0;
  code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < kRefused; ++i) {
    code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)refused[i], 0, 1);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, (unsigned)answer);
  }
  code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {(unsigned short)at, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 1;
  if (whole) return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}
static int refuse(void) { return filter((int)(SECCOMP_RET_ERRNO | 1), 0); }
static int refuse_all_threads(void) { return filter((int)(SECCOMP_RET_ERRNO | 1), 1); }
static int refuse_unknown(void) { return filter((int)(SECCOMP_RET_ERRNO | 38), 0); }
static int kill_for_it(void) { return filter((int)SECCOMP_RET_KILL_PROCESS, 0); }

enum { kForks = 1, kNone = 0 };
static const struct {
  const char* name;
  int (*confine)(void);
  int forks;
  int connects;  // whether a child that is forked afterwards can still connect
} ways[] = {
    {"another user", drop_user, kForks, 1},
    {"another user, who may come back", drop_user_later, kForks, 1},
    {"not dumpable", hide, kForks, 1},
    {"another root", new_root, kForks, 1},
    {"no descriptors", no_descriptors, kNone, 1},
    {"few signals", few_signals, kForks, 1},
    {"landlock", land, kForks, 1},
    {"mount namespace", own_mounts, kForks, 1},
    {"table of its own", own_table, kForks, 1},
    {"no proc", no_proc, kForks, 1},
    {"filter", refuse, kForks, 0},
    {"filter of all threads", refuse_all_threads, kForks, 0},
    {"filter that knows no calls", refuse_unknown, kForks, 0},
    {"filter that kills", kill_for_it, kNone, 0},
};

static void try(int which) {
  alarm(60);
  char* far = new_bytes();
  if (ways[which].confine() != 0) {
    printf("cannot be: errno %d\n", errno);
    _exit(3);
  }
  go_on(far, ways[which].forks);
  fflush(stdout);
  _exit(0);
}

int main(int count, char** arguments) {
  check_preloaded();
  setvbuf(stdout, NULL, _IOLBF, 0);
  const int connected = count > 1 && strcmp(arguments[1], "connected") == 0;
  char* far = new_bytes();
  for (int i = 0; i < (int)(sizeof ways / sizeof *ways); ++i) {
    if (connected && (!ways[i].connects || ways[i].forks == kNone)) continue;
    printf("--- %s\n", ways[i].name);
    pid_t child = fork();
    if (child == 0) try(i);
    wait_for(child);
  }
  count_right("at last", far);
  return 0;
}
