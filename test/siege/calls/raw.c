// Calls that name memory or descriptors, made by syscall(2): as natively, and no byte of far memory is lost by them.
// With "instruction" they are made by instructions of the program's own.
#include "../../preload/report.h"

#include <fcntl.h>
#include <linux/mman.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define PAGE 4096ul
#define PAGES 6144ul  // 24 MiB

static long by_function(long number, long a, long b, long c, long d, long e, long f) {
  return syscall(number, a, b, c, d, e, f);
}

static long by_instruction(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  if (result < 0 && result >= -4095) return errno = (int)-result, -1;
  return result;
}

static long (*make)(long, long, long, long, long, long, long) = by_function;
#define CALL6(number, a, b, c, d, e, f) make(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define CALL5(number, a, b, c, d, e) CALL6(number, a, b, c, d, e, 0)
#define CALL3(number, a, b, c) CALL6(number, a, b, c, 0, 0, 0)

static void show(const char* what, long result) {
  printf("%s: %ld errno %d\n", what, result, result == -1 ? errno : 0);
  fflush(stdout);
}

static uint64_t word_of(size_t page) { return (page + 1) * 0x9e3779b97f4a7c15ull; }

static void fill(char* at, size_t pages) {
  for (size_t i = 0; i < pages; ++i) {
    *(uint64_t*)(at + i * PAGE) = word_of(i);
    *(uint64_t*)(at + i * PAGE + PAGE - 8) = ~word_of(i);
  }
}

// How many pages hold what was written, zeros, or something else.
static void count(const char* what, const char* at, size_t pages, size_t first) {
  size_t right = 0, zero = 0, wrong = 0;
  for (size_t i = 0; i < pages; ++i) {
    uint64_t head = *(const uint64_t*)(at + i * PAGE), tail = *(const uint64_t*)(at + i * PAGE + PAGE - 8);
    if (head == word_of(first + i) && tail == ~word_of(first + i))
      ++right;
    else if (head == 0 && tail == 0)
      ++zero;
    else
      ++wrong;
  }
  printf("%s: %zu right, %zu zero, %zu wrong\n", what, right, zero, wrong);
  fflush(stdout);
}

static char* far(void) {
  char* at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(at != MAP_FAILED);
  fill(at, PAGES);
  return at;
}

static void dropped(void) {
  char* at = far();
  show("madvise", CALL3(SYS_madvise, at, PAGES / 2 * PAGE, MADV_DONTNEED));
  count("half dropped", at, PAGES, 0);
  fill(at, PAGES);
  struct iovec parts[40];
  for (size_t i = 0; i < 40; ++i) parts[i] = (struct iovec){at + i * 100 * PAGE, 50 * PAGE};
  int self = (int)CALL3(SYS_pidfd_open, getpid(), 0, 0);
  CHECK(self >= 0);
  long done = CALL5(SYS_process_madvise, self, parts, 40, MADV_DONTNEED, 0);
  printf("process_madvise: %s\n", done == -1 ? strerror(errno) : done == 40 * 50 * (long)PAGE ? "all" : "part");
  if (done == -1) {  // Linux before 6.13
    for (size_t i = 0; i < 40; ++i) madvise(parts[i].iov_base, parts[i].iov_len, MADV_DONTNEED);
  }
  count("40 parts dropped", at, PAGES, 0);
  fill(at, PAGES);
  done = process_madvise(self, parts, 40, MADV_DONTNEED, 0);
  if (done == -1) {
    for (size_t i = 0; i < 40; ++i) madvise(parts[i].iov_base, parts[i].iov_len, MADV_DONTNEED);
  }
  count("by the function", at, PAGES, 0);
  show("process_madvise of advice 9999", CALL5(SYS_process_madvise, self, parts, 40, 9999, 0));
  show("process_madvise with flags", CALL5(SYS_process_madvise, self, parts, 40, MADV_COLD, 77));
  show("process_madvise of nothing", CALL5(SYS_process_madvise, self, 16, 1, MADV_COLD, 0));
  close(self);
  show("munmap", CALL3(SYS_munmap, at, PAGES * PAGE, 0));
}

static void moved(void) {
  char* at = (char*)CALL6(SYS_mmap, 0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(at != MAP_FAILED);
  fill(at, PAGES);
  char* to = (char*)CALL5(SYS_mremap, at, PAGES * PAGE, PAGES * 2 * PAGE, MREMAP_MAYMOVE, 0);
  CHECK(to != MAP_FAILED);
  count("moved", to, PAGES * 2, 0);
  show("mprotect", CALL3(SYS_mprotect, to, PAGES * PAGE, PROT_READ));
  count("read only", to, PAGES, 0);
  show("mprotect again", CALL3(SYS_mprotect, to, PAGES * PAGE, PROT_READ | PROT_WRITE));
  show("a hole", CALL3(SYS_munmap, to + 100 * PAGE, 100 * PAGE, 0));
  char* new = (char*)CALL6(SYS_mmap, to + 100 * PAGE, 100 * PAGE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  CHECK(new == to + 100 * PAGE);
  count("the hole filled", to, PAGES, 0);
  show("mlock", CALL3(SYS_mlock, to, 16 * PAGE, 0));
  unsigned char there[16];
  show("mincore", CALL3(SYS_mincore, to, 16 * PAGE, there));
  printf("locked pages are there: %d\n", there[0] & there[15] & 1);
  show("munlock", CALL3(SYS_munlock, to, 16 * PAGE, 0));
  show("msync", CALL3(SYS_msync, to, PAGES * PAGE, MS_SYNC));
  show("munmap", CALL3(SYS_munmap, to, PAGES * 2 * PAGE, 0));
}

static void segment(void) {
  char* at = far();
  int id = shmget(IPC_PRIVATE, 64 * PAGE, IPC_CREAT | 0600);
  CHECK(id >= 0);
  char* in = (char*)CALL3(SYS_shmat, id, at + 64 * PAGE, SHM_REMAP);
  CHECK(in == at + 64 * PAGE);
  shmctl(id, IPC_RMID, NULL);
  count("a segment inside", at, PAGES, 0);
  memset(in, 7, 64 * PAGE);
  count("the rest", at + 128 * PAGE, PAGES - 128, 128);
  printf("the segment: %d %d\n", in[0], in[64 * PAGE - 1]);
  show("munmap", CALL3(SYS_munmap, at, PAGES * PAGE, 0));
}

// Every descriptor that there could be, in every way.
static void descriptors(void) {
  char* at = far();
  int file = open("/dev/null", O_RDONLY), closed = 0;
  for (int i = file + 1; i < 1100; ++i) closed += CALL3(SYS_close, i, 0, 0) == 0;
  printf("closed %d\n", closed);
  int status = 0;
  for (int i = file + 1; i < 1100; ++i) status += CALL3(SYS_fcntl, i, F_GETFD, 0) != -1;
  printf("open %d\n", status);
  show("close_range", CALL3(SYS_close_range, file + 1, ~0u, 0));
  show("close_range, unshared", CALL3(SYS_close_range, file + 1, ~0u, 2 /* CLOSE_RANGE_UNSHARE */));
  count("all closed", at, PAGES, 0);
  fill(at, PAGES);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    CALL3(SYS_close_range, 3, ~0u, 0);
    count("in a child", at, PAGES, 0);
    fill(at, PAGES);
    count("in a child", at, PAGES, 0);
    fflush(stdout);
    _exit(0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  printf("child %d\n", status);
  count("after a child", at, PAGES, 0);
  show("munmap", CALL3(SYS_munmap, at, PAGES * PAGE, 0));
  at = far();
  count("new memory", at, PAGES, 0);
  show("munmap", CALL3(SYS_munmap, at, PAGES * PAGE, 0));
  close(file);
}

// All descriptors are closed by instructions, which nobody sees: how many there were is the runtime's affair, and
// what far memory holds is not.
static void closed_once(void) {
  char* at = far();
  CALL3(SYS_close_range, 3, ~0u, 0);
  count("in the next program", at, PAGES, 0);
  fill(at, PAGES);
  count("in the next program", at, PAGES, 0);
}

// Where the limit leaves no high numbers the runtime's are low: what is opened later gets one that was the runtime's.
static void closed_with_few(char* program) {
  struct rlimit few = {64, 64};
  CHECK(CALL5(SYS_prlimit64, 0, RLIMIT_NOFILE, &few, NULL, 0) == 0);
  execl(program, program, "instruction", "once", NULL);
  show("execl", -1);
}

static void closed_unseen(char* program) {
  char* at = far();
  for (int round = 0; round < 3; ++round) {
    for (int i = 3; i < 1100; ++i) CALL3(SYS_close, i, 0, 0);
    count("closed one by one", at, PAGES, 0);
    CALL3(SYS_close_range, 3, ~0u, round == 2 ? 2 /* CLOSE_RANGE_UNSHARE */ : 0);
    fill(at, PAGES);
    count("closed at once", at, PAGES, 0);
    char* more = far();
    count("new memory", more, PAGES, 0);
    show("munmap", munmap(more, PAGES * PAGE));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      CALL3(SYS_close_range, 3, ~0u, 0);
      count("in a child", at, PAGES, 0);
      fill(at, PAGES);
      count("in a child, written", at, PAGES, 0);
      fflush(stdout);
      if (round == 1) execl(program, program, "instruction", "once", NULL);
      _exit(0);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    printf("child %d\n", status);
    count("after a child", at, PAGES, 0);
  }
}

int main(int argc, char** argv) {
  check_preloaded();
  if (argc > 1 && strcmp(argv[1], "instruction") == 0) make = by_instruction;
  if (argc > 2 && strcmp(argv[2], "descriptors") == 0) {
    closed_unseen(argv[0]);
    return 0;
  }
  if (argc > 2 && strcmp(argv[2], "few") == 0) {
    closed_with_few(argv[0]);
    return 1;
  }
  if (argc > 2) {
    closed_once();
    return 0;
  }
  dropped();
  moved();
  segment();
  descriptors();
  puts("done");
  return 0;
}
