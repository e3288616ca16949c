/* Programs that set limits for themselves, or end in ways of their own. limits WHAT [ARGUMENT]; prints what it saw.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kPage = 4096 };
static const size_t kMiB = 1 << 20;

static void check(int ok, const char* what) {
  if (ok) return;
  printf("failed: %s (%s)\n", what, strerror(errno));
  exit(1);
}

/* More than the budget of the tests, each page told from the others. */
static const size_t kBytes = 64 << 20;
static void fill(unsigned char* memory, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kPage) memory[at] = (unsigned char)(at / kPage * 7 + 1);
}
static int is_right(const unsigned char* memory, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kPage)
    if (memory[at] != (unsigned char)(at / kPage * 7 + 1)) return 0;
  return 1;
}
static unsigned char* far_memory_of(size_t bytes) {
  unsigned char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(memory != MAP_FAILED, "far memory");
  fill(memory, bytes);
  return memory;
}
static unsigned char* far_memory(void) { return far_memory_of(kBytes); }

/* --- ends --- */

static void* raw_exit(void* status) {
  syscall(SYS_exit, (long)status);
  return NULL;
}
__attribute__((noreturn)) static void exit_instruction(long status) {
  for (;;) __asm__ volatile("syscall" ::"a"(SYS_exit), "D"(status) : "rcx", "r11", "memory");
}
__attribute__((noreturn)) static void* exit_as_instruction(void* status) { exit_instruction((long)status); }

static void* after_main(void* status) {
  /* Main is a zombie then: field 3 of its line. */
  char name[64], state = 0;
  snprintf(name, sizeof name, "/proc/self/task/%d/stat", getpid());
  while (state != 'Z') {
    FILE* file = fopen(name, "r");
    check(file != NULL && fscanf(file, "%*d %*s %c", &state) == 1, "the state of main");
    fclose(file);
  }
  return raw_exit(status);
}

static int ends(const char* how) {
  unsigned char* memory = far_memory();
  check(is_right(memory, kBytes), "what was written");
  pthread_t thread;
  printf("ends\n");
  fflush(stdout);
  if (strcmp(how, "call") == 0) syscall(SYS_exit, 3);
  if (strcmp(how, "instruction") == 0) exit_instruction(3);
  if (strcmp(how, "thread") == 0 && pthread_create(&thread, NULL, raw_exit, NULL) == 0) {
    pthread_join(thread, NULL);
    exit_instruction(5); /* the thread that went without libc was counted as long as it was there */
  }
  if (strcmp(how, "main-first") == 0 && pthread_create(&thread, NULL, after_main, NULL) == 0) exit_instruction(6);
  if (strcmp(how, "main-waits") == 0 && pthread_create(&thread, NULL, exit_as_instruction, NULL) == 0) {
    pthread_join(thread, NULL);
    return 7;
  }
  if (strcmp(how, "strict") == 0) {
    check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0, "strict seccomp");
    int right = is_right(memory, kBytes);
    syscall(SYS_exit, right ? 8 : 1);
  }
  return 1;
}

/* --- seccomp --- */

static void* stay(void* argument) {
  (void)argument;
  for (;;) pause();
  return NULL;
}

/* What the runtime needs for a fault is refused, as a sandbox does that knows nothing of it. */
static int filter(const char* how) {
  unsigned char* memory = far_memory();
  pthread_t thread;
  if (strcmp(how, "threads") == 0) check(pthread_create(&thread, NULL, stay, NULL) == 0, "a thread");
  struct sock_filter refuse[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_madvise, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
  struct sock_fprog program = {sizeof refuse / sizeof *refuse, refuse};
  check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
  check(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0, "the filter");
  printf("filtered\n");
  fflush(stdout);
  printf("%s\n", is_right(memory, kBytes) ? "right" : "wrong");
  return 0;
}

/* --- limits --- */

static int set_and_read(int resource, rlim_t bytes) {
  struct rlimit limit, seen;
  check(getrlimit(resource, &limit) == 0, "getrlimit");
  limit.rlim_cur = bytes;
  check(setrlimit(resource, &limit) == 0, "setrlimit");
  check(getrlimit(resource, &seen) == 0, "getrlimit");
  check(seen.rlim_cur == bytes && seen.rlim_max == limit.rlim_max, "what getrlimit says");
  check(prlimit(0, resource, NULL, &seen) == 0 && seen.rlim_cur == bytes, "what prlimit says");
  check(prlimit(getpid(), resource, &limit, &seen) == 0 && seen.rlim_cur == bytes, "prlimit both ways");
  check(syscall(SYS_getrlimit, resource, &seen) == 0 && seen.rlim_cur == bytes, "what the system call says");
  check(syscall(SYS_prlimit64, 0, resource, NULL, &seen) == 0 && seen.rlim_cur == bytes, "what prlimit64 says");
  return 0;
}

static int child_reads(int resource, rlim_t bytes) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    struct rlimit seen;
    _exit(getrlimit(resource, &seen) == 0 && seen.rlim_cur == bytes && is_right(far_memory(), kBytes) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0;
}

/* A program that bounds itself: what is within the bound is granted, as natively, what is beyond is not. */
static int bounded(int resource) {
  rlim_t bytes = 1024 * kMiB;
  set_and_read(resource, bytes);
  unsigned char* memory = far_memory();
  char* block = malloc(100 * kMiB);
  check(block != NULL, "malloc within the limit");
  memset(block, 1, 100 * kMiB);
  check(mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED &&
            errno == ENOMEM,
        "a mapping beyond the limit");
  check(malloc(2 * bytes) == NULL, "malloc beyond the limit");
  check(is_right(memory, kBytes), "what was written");
  check(child_reads(resource, bytes), "a forked child");
  check(munmap(memory, kBytes) == 0, "munmap");
  struct rlimit none;
  getrlimit(resource, &none);
  none.rlim_cur = none.rlim_max;
  check(setrlimit(resource, &none) == 0, "the limit taken back");
  void* large = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(large != MAP_FAILED, "a large mapping without the limit");
  printf("bounded\n");
  return 0;
}

static pthread_mutex_t g_gate = PTHREAD_MUTEX_INITIALIZER;
static void* wait_for_gate(void* argument) {
  pthread_mutex_lock(&g_gate);
  pthread_mutex_unlock(&g_gate);
  return argument;
}

/* Stacks of threads count, too: as many as there is room for. Those of threads that have ended are used again. */
static int threads(int resource) {
  enum { kMost = 64 };
  const size_t stack = 32 * kMiB, room = 200 * kMiB;
  pthread_t made[kMost];
  pthread_attr_t attributes;
  int count = 0, error = 0;
  unsigned char* memory = far_memory();
  set_and_read(resource, kBytes + 100 * kMiB + room);
  check(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, stack) == 0, "attributes");
  pthread_mutex_lock(&g_gate);
  while (count < kMost && (error = pthread_create(&made[count], &attributes, wait_for_gate, NULL)) == 0) ++count;
  check(error == EAGAIN, "a thread beyond the limit");
  check(count >= (int)(room / stack) && count <= (int)((room + 100 * kMiB) / stack), "as many as there is room for");
  pthread_mutex_unlock(&g_gate);
  for (int i = 0; i < count; ++i) check(pthread_join(made[i], NULL) == 0, "the end of a thread");
  check(pthread_create(&made[0], &attributes, wait_for_gate, NULL) == 0, "a thread in the place of another");
  check(pthread_join(made[0], NULL) == 0 && is_right(memory, kBytes), "what was written");
  printf("threads\n");
  return 0;
}

static int says(int resource) {
  struct rlimit seen;
  getrlimit(resource, &seen);
  unsigned char* memory = far_memory();
  printf("%s %s\n", seen.rlim_cur == RLIM_INFINITY ? "unlimited" : "limited",
         is_right(memory, kBytes) ? "right" : "wrong");
  if (seen.rlim_cur != RLIM_INFINITY) printf("%lu\n", (unsigned long)seen.rlim_cur);
  return 0;
}

/* Twice the budget of the tests: over file: each page is a wait for the disk. */
static const size_t kFew = 16 << 20;

static int descriptors(rlim_t count) {
  struct rlimit limit;
  check(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
  limit.rlim_cur = count;
  unsigned char* memory = far_memory_of(kFew);
  check(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
  unsigned char* more = far_memory_of(kFew);
  check(is_right(memory, kFew) && is_right(more, kFew), "what was written");
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit(is_right(memory, kFew) && is_right(far_memory_of(kFew), kFew) ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  printf("%s\n", status == 0 ? "right" : "wrong in the child");
  return status != 0;
}

int main(int count, char** words) {
  if (count < 3) return 2;
  if (strcmp(words[1], "ends") == 0) return ends(words[2]);
  if (strcmp(words[1], "filter") == 0) return filter(words[2]);
  if (strcmp(words[1], "descriptors") == 0) return descriptors((rlim_t)atoi(words[2]));
  int resource = strcmp(words[2], "as") == 0 ? RLIMIT_AS : RLIMIT_DATA;
  if (strcmp(words[1], "bounded") == 0) return bounded(resource);
  if (strcmp(words[1], "threads") == 0) return threads(resource);
  if (strcmp(words[1], "says") == 0) return says(resource);
  return 2;
}
