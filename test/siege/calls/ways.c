// Ways to the runtime's descriptors that do not name them in a call on a descriptor: names below /proc, copies by
// pidfd_getfd, and requests of io_uring that close. None is open, as natively, and no byte of far memory is lost.
#include "far_bytes.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { kFirst = 30, kEnd = 1200 };

static long cut(int descriptor) {
  if (descriptor < 0) return -1;
  if (ftruncate(descriptor, 0) == 0) puts("a file of nobody's is cut");
  close(descriptor);
  return 0;
}

static long stream(FILE* file) { return file == NULL ? -1 : (fclose(file), 0); }

static struct open_how how = {.flags = O_RDWR | O_TRUNC};

// X(what it is called, the call) with `path`, a name of the descriptor `fd`
#define CALLS(X)                                                                           \
  X("open to write", cut(open(path, O_RDWR)))                                              \
  X("open to cut", cut(open64(path, O_RDONLY | O_TRUNC)))                                  \
  X("openat", cut(openat(AT_FDCWD, path, O_WRONLY)))                                       \
  X("openat64", cut(openat64(AT_FDCWD, path, O_WRONLY | O_TRUNC)))                         \
  X("creat", cut(creat(path, 0600)))                                                       \
  X("creat64", cut(creat64(path, 0600)))                                                   \
  X("truncate", truncate(path, 0))                                                         \
  X("truncate64", truncate64(path, 0))                                                     \
  X("fopen", stream(fopen(path, "w")))                                                     \
  X("fopen to read and write", stream(fopen64(path, "r+")))                                \
  X("open by number", cut((int)syscall(SYS_open, path, O_RDWR | O_TRUNC)))                 \
  X("openat by number", cut((int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_TRUNC)))   \
  X("openat2 by number", cut((int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how))) \
  X("creat by number", cut((int)syscall(SYS_creat, path, 0600)))                           \
  X("truncate by number", syscall(SYS_truncate, path, 0))

static void by_name(const char* format, const char* link) {
  for (int fd = kFirst; fd < kEnd; ++fd) {
    char name[64];
    snprintf(name, sizeof name, format, (int)getpid(), fd);
    const char* path = name;
    if (link != NULL) {
      unlink(link);
      CHECK(symlink(name, link) == 0);
      path = link;
    }
    // Files without a name of their own: no other can only be reached in this way.
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 0) continue;
#define X(what, call) \
  if (call >= 0) printf("%s reached %d\n", what, fd);
    CALLS(X)
#undef X
  }
  if (link != NULL) unlink(link);
}

// The program's own files are reached as natively, also those that have no name.
static void of_its_own(void) {
  char name[] = "./ways-XXXXXX", path[64];
  int file = mkstemp(name);
  CHECK(file >= 0 && unlink(name) == 0);
  int fd = fcntl(file, F_DUPFD, 950);
  CHECK(fd >= 950);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
#define X(what, call)                    \
  CHECK(write(fd, "nine byte", 9) == 9); \
  printf("%s: %ld\n", what, (long)(call));
  CALLS(X)
#undef X
  struct stat status;
  CHECK(fstat(fd, &status) == 0);
  printf("its own file has %ld bytes\n", (long)status.st_size);
  show("of a wrong pointer", open((const char*)8, O_RDWR));
  show("of nothing", open("", O_RDWR));
  show("of a descriptor that is none", openat(777, "x", O_RDWR));
  int self = pidfd_open(getpid(), 0), same = pidfd_getfd(self, fd, 0);
  printf("a copy of its own: %d\n", same >= 0);
  show("a copy of none", pidfd_getfd(self, 888, 0));
  close(same), close(self), close(fd), close(file);
}

static void by_copy(void) {
  int self = pidfd_open(getpid(), 0);
  CHECK(self >= 0);
  for (int fd = kFirst; fd < kEnd; ++fd) {
    if (cut(pidfd_getfd(self, fd, 0)) == 0) printf("a copy of %d\n", fd);
    if (cut((int)syscall(SYS_pidfd_getfd, self, fd, 0)) == 0) printf("by number a copy of %d\n", fd);
  }
  // A child's are copies of its parent's.
  int ready[2];
  CHECK(pipe(ready) == 0);
  pid_t child = fork();
  if (child == 0) {
    char byte;
    close(ready[1]);
    _exit(read(ready[0], &byte, 1) == 0 ? 0 : 1);
  }
  int other = pidfd_open(child, 0);
  CHECK(other >= 0);
  for (int fd = kFirst; fd < kEnd; ++fd) {
    int copy = pidfd_getfd(other, fd, 0);
    struct stat status;
    if (copy >= 0 && fstat(copy, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0)
      printf("a file of a child's: %d\n", fd);
    if (copy >= 0) close(copy);
  }
  close(ready[0]), close(ready[1]);
  CHECK(waitpid(child, NULL, 0) == child);
  close(other), close(self);
}

// A ring that closes every number.
static void by_ring(void) {
  struct io_uring_params about = {0};
  int ring = (int)syscall(SYS_io_uring_setup, 8, &about);
  if (ring < 0) return;
  char* queue = mmap(NULL, about.sq_off.array + about.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
  struct io_uring_sqe* entries =
      mmap(NULL, about.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
  char* done = mmap(NULL, about.cq_off.cqes + about.cq_entries * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE,
                    MAP_SHARED, ring, IORING_OFF_CQ_RING);
  CHECK(queue != MAP_FAILED && (void*)entries != MAP_FAILED && done != MAP_FAILED);
  for (int fd = kFirst; fd < kEnd; ++fd) {
    if (fd == ring) continue;
    entries[0] = (struct io_uring_sqe){.opcode = IORING_OP_CLOSE, .fd = fd};
    *(unsigned*)(queue + about.sq_off.array) = 0;
    unsigned* tail = (unsigned*)(queue + about.sq_off.tail);
    unsigned at = *tail & (about.sq_entries - 1);
    entries[at] = entries[0];
    ((unsigned*)(queue + about.sq_off.array))[at] = at;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    CHECK(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
    unsigned* head = (unsigned*)(done + about.cq_off.head);
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
  }
  close(ring);
}

int main(void) {
  check_preloaded();
  char* far = new_bytes();
  of_its_own();
  by_name("/proc/%d/fd/%d", NULL);
  by_name("/proc/%d/fd/%d", "./ways-link");
  by_copy();
  count_right("after names and copies", far);
  by_ring();
  count_right("after a ring", far);
  show_that_paging_goes_on(far);
  return 0;
}
