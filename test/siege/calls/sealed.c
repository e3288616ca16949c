// mseal(2): far memory cannot be sealed, because its pages have to leave, and says so; other memory can.
#include "far_bytes.h"

#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef SYS_mseal
#define SYS_mseal 462
#endif

static void of_far_memory(void) {
  char* at = new_bytes();
  long whole = syscall(SYS_mseal, at, PAGES * PAGE, 0);
  int refused = whole == -1 && errno == EPERM;
  printf("far memory: %s\n", refused == has_far_memory() ? "as promised" : "not as promised");
  count_right("after sealing", at);
  // Natively it is sealed now, and stays.
  if (!has_far_memory()) return;
  CHECK(syscall(SYS_mseal, at + 100 * PAGE, PAGE, 0) == -1 && errno == EPERM);
  CHECK(mprotect(at, PAGE, PROT_NONE) == 0 && mprotect(at, PAGE, PROT_READ | PROT_WRITE) == 0);
  CHECK(madvise(at, PAGE, MADV_DONTNEED) == 0 && *(uint64_t*)at == 0);
  CHECK(mremap(at, PAGES * PAGE, 2 * PAGES * PAGE, MREMAP_MAYMOVE) != MAP_FAILED);
}

// A mapping of a file stays local.
static void of_other_memory(void) {
  int file = memfd_create("sealed", MFD_CLOEXEC);
  CHECK(file >= 0 && ftruncate(file, 16 * PAGE) == 0);
  char* at = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  CHECK(at != MAP_FAILED);
  at[0] = 1;
  show("mseal", syscall(SYS_mseal, at, 16 * PAGE, 0));
  show("mprotect", mprotect(at, PAGE, PROT_READ));
  show("munmap", munmap(at, 16 * PAGE));
  show("mmap over it", mmap(at, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
  show("munmap by number", syscall(SYS_munmap, at, 16 * PAGE));
  printf("still there: %d\n", at[0]);
  show("with flags", syscall(SYS_mseal, at, PAGE, 77));
  show("not aligned", syscall(SYS_mseal, at + 1, PAGE, 0));
  close(file);
}

// A child is made although something is sealed, and has it.
static void in_a_child(void) {
  char* at = new_bytes();
  pid_t child = fork();
  if (child == 0) {
    count_right("in a child", at);
    _exit(0);
  }
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  show("child", status);
}

int main(void) {
  check_preloaded();
  if (syscall(SYS_mseal, 0, 0, 0) == -1 && errno == ENOSYS) {
    puts("no mseal before Linux 6.10");
    return 0;
  }
  of_far_memory();
  of_other_memory();
  in_a_child();
  return 0;
}
