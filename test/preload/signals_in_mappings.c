// Signals that come in the middle of mmap and its kin: their handlers leave by siglongjmp, or map and unmap
// themselves.
#include "report.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>

enum { kPage = 4096, kPages = 3000, kJumps = 2000, kVisits = 2000 };

static sigjmp_buf g_out;
static volatile sig_atomic_t g_visits, g_wrong;

static void leave(int number) {
  (void)number;
  siglongjmp(g_out, 1);
}

static void map_too(int number) {
  (void)number;
  char* mapped = mmap(NULL, 16 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    g_wrong = 1;
    return;
  }
  mapped[kPage] = 1;
  if (mapped[2 * kPage] != 0 || munmap(mapped, 16 * kPage) != 0) g_wrong = 2;
  ++g_visits;
}

static void every(long microseconds) {
  struct itimerval timer = {{0, microseconds}, {0, microseconds}};
  CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void handle_with(void (*handler)(int)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  CHECK(sigaction(SIGALRM, &action, NULL) == 0);
}

// As many different calls as possible, each of which takes the runtime's locks.
static void map_and_unmap(void) {
  char* mapped = mmap(NULL, 8 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(mapped != MAP_FAILED);
  mapped[0] = 1;
  CHECK(mprotect(mapped + kPage, kPage, PROT_READ) == 0 &&
        mprotect(mapped + kPage, kPage, PROT_READ | PROT_WRITE) == 0);
  mapped = mremap(mapped, 8 * kPage, 16 * kPage, MREMAP_MAYMOVE);
  CHECK(mapped != MAP_FAILED && mapped[0] == 1);
  CHECK(madvise(mapped, 16 * kPage, MADV_DONTNEED) == 0 && munmap(mapped, 16 * kPage) == 0);
  mapped = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);  // left local
  CHECK(mapped != MAP_FAILED && munmap(mapped, kPage) == 0);
}

int main(void) {
  check_preloaded();
  unsigned char* memory =
      mmap(NULL, (size_t)kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  for (int page = 0; page < kPages; ++page) memory[(size_t)page * kPage] = (unsigned char)(page % 251);

  volatile int jumps = 0;
  handle_with(leave);
  every(300);
  if (sigsetjmp(g_out, 1) != 0) ++jumps;
  while (jumps < kJumps) map_and_unmap();
  every(0);
  printf("left %d times\n", jumps >= kJumps);

  handle_with(map_too);
  every(300);
  while (g_visits < kVisits) map_and_unmap();
  every(0);
  printf("mapped in handlers, wrong %d\n", g_wrong);

  int wrong = 0;
  for (int page = 0; page < kPages; ++page) wrong += memory[(size_t)page * kPage] != (unsigned char)(page % 251);
  printf("pages wrong %d\n", wrong);
  // The thread is still served: a new mapping lies near the old one, natively and in the window.
  char* late = mmap(NULL, 64 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  intptr_t distance = late - (char*)memory;
  printf("near %d\n", late != MAP_FAILED && distance < (intptr_t)8 << 30 && -distance < (intptr_t)8 << 30);
  return 0;
}
