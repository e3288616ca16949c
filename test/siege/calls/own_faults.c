// A userfaultfd of the program's own: on memory that is not far it works as natively; far memory has one already,
// which the program is told.
#include "far_bytes.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

enum { kServed = 16 };

static int g_faults;
static char g_page[PAGE] __attribute__((aligned(4096)));  // not far
static char* g_served;

static int open_faults(void) {
  int made = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
  if (made < 0) return made;
  struct uffdio_api api = {.api = UFFD_API};
  CHECK(ioctl(made, UFFDIO_API, &api) == 0);
  return made;
}

static long watch(const char* at, size_t bytes) {
  struct uffdio_register range = {.range = {(uintptr_t)at, bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  return ioctl(g_faults, UFFDIO_REGISTER, &range);
}

static void* serve(void* unused) {
  for (int i = 0; i < kServed; ++i) {
    struct uffd_msg message;
    CHECK(read(g_faults, &message, sizeof message) == (ssize_t)sizeof message);
    CHECK(message.event == UFFD_EVENT_PAGEFAULT);
    uintptr_t page = message.arg.pagefault.address & ~(PAGE - 1);
    memset(g_page, (int)((page - (uintptr_t)g_served) / PAGE + 1), PAGE);
    struct uffdio_copy copy = {.dst = page, .src = (uintptr_t)g_page, .len = PAGE};
    CHECK(ioctl(g_faults, UFFDIO_COPY, &copy) == 0);
  }
  return unused;
}

// A shared mapping, which stays local.
static void of_other_memory(void) {
  g_served = mmap(NULL, kServed * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(g_served != MAP_FAILED);
  show("registered", watch(g_served, kServed * PAGE));
  pthread_t server;
  CHECK(pthread_create(&server, NULL, serve, NULL) == 0);
  int right = 0;
  for (int i = 0; i < kServed; ++i) right += g_served[(size_t)i * PAGE] == i + 1;
  CHECK(pthread_join(server, NULL) == 0);
  show("pages served", right);
  show("munmap", munmap(g_served, kServed * PAGE));
}

static void of_far_memory(void) {
  char* at = new_bytes();
  long result = watch(at, PAGES * PAGE);
  int busy = result == -1 && errno == EBUSY;
  printf("far memory: %s\n", busy == has_far_memory() ? "as promised" : "not as promised");
  struct uffdio_range range = {(uintptr_t)at, PAGES * PAGE};
  // Takes nothing away that is another's.
  if (busy) ioctl(g_faults, UFFDIO_UNREGISTER, &range);
  count_right("after that", at);
  char* more = new_bytes();
  count_right("more", more);
  count_right("the first", at);
}

int main(void) {
  check_preloaded();
  g_faults = open_faults();
  if (g_faults < 0) {
    puts("no userfaultfd for this program");
    return 0;
  }
  of_other_memory();
  of_far_memory();
  close(g_faults);
  return 0;
}
