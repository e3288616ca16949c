// A new descriptor has the lowest free number, as POSIX says: nobody opens files in this process but the program,
// whatever the runtime does for its memory meanwhile.
#include "report.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

enum { kBytes = 24 << 20, kPage = 4096, kSeconds = 2, kOnceEach = 40 };

static atomic_int stopped;

// More memory than may be local, gone through over and over; a part of it may not be accessed in between.
static void* use_memory(void* unused) {
  (void)unused;
  unsigned char* memory = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  unsigned char* closed = memory + kBytes / 2;
  for (unsigned char round = 1; !stopped; ++round) {
    for (size_t at = 0; at < kBytes; at += kPage) memory[at] = round;
    CHECK(mprotect(closed, kBytes / 4, PROT_NONE) == 0);
    for (size_t at = 0; at < kBytes / 2; at += kPage) CHECK(memory[at] == round);
    CHECK(mprotect(closed, kBytes / 4, PROT_READ | PROT_WRITE) == 0);
    for (size_t at = kBytes / 2; at < kBytes; at += kPage) CHECK(memory[at] == round);
  }
  return memory;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(void) {
  check_preloaded();
  int lowest = open("/dev/null", O_RDONLY);
  CHECK(lowest >= 0 && close(lowest) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, use_memory, NULL) == 0);
  // What the runtime opens for good, at the beginning of paging and for each of its threads, takes a low number for
  // some microseconds, once. What it opens again and again would be met again and again.
  long met = 0;
  int before = 0;
  for (double end = seconds() + kSeconds; seconds() < end;) {
    for (int i = 0; i < 1000; ++i) {
      int opened = open("/dev/null", O_RDONLY);
      int other = opened != lowest;
      // A number that is not open here is nobody's.
      if (close(opened + 1) != -1 || errno != EBADF) other = 1;
      CHECK(close(opened) == 0);
      met += other && !before;  // however long it lasted
      before = other;
    }
  }
  stopped = 1;
  CHECK(pthread_join(thread, NULL) == 0);
  if (met < kOnceEach)
    printf("the lowest number\n");
  else
    printf("other numbers %ld times\n", met);
  return 0;
}
