// A thread that was cancelled goes on until it comes to a cancellation point. Memory calls are none, however long
// they wait for pages that are under way.
#include "report.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#define BYTES ((size_t)32 << 20)  // of which the test has a quarter local
#define PAGE 4096u

static char* g_area;

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// No system call but those that the kernel does without a cancellation point.
static void* works(void* argument) {
  double end = seconds() + 2;
  unsigned char value = 0;
  int wrong = 0;
  do {
    ++value;
    for (size_t at = 0; at < BYTES; at += PAGE) g_area[at] = (char)value;
    for (size_t at = 0; at < BYTES; at += 1 << 20) {
      wrong |= g_area[at] != (char)value;
      wrong |= madvise(g_area + at, 1 << 20, MADV_DONTNEED) != 0 || g_area[at] != 0;
    }
    wrong |= mprotect(g_area, BYTES, PROT_READ) != 0 || mprotect(g_area, BYTES, PROT_READ | PROT_WRITE) != 0;
    free(malloc((size_t)5 << 20));
  } while (seconds() < end);
  int before = -1;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  printf("not cancelled yet, wrong %d, can be cancelled %d\n", wrong, before == PTHREAD_CANCEL_ENABLE);
  pthread_setcancelstate(before, NULL);
  pthread_testcancel();
  puts("cancelled too late");
  return argument;
}

int main(void) {
  check_preloaded();
  g_area = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(g_area != MAP_FAILED);
  pthread_t thread;
  void* result = NULL;
  CHECK(pthread_create(&thread, NULL, works, NULL) == 0);
  CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
  printf("cancelled %d\n", result == PTHREAD_CANCELED);
  memset(g_area, 1, BYTES);  // nobody holds a lock of the runtime's
  CHECK(munmap(g_area, BYTES) == 0);
  return 0;
}
