// fork, again and again, from a process whose threads write to far memory all the time; the children do the same, and
// fork in turn. Every process checks what it inherited, then goes on changing it. Who ends first is left to chance.
//
// A writer sets the words of a page in order to the next version, so at any moment the first is equal to the last or
// one ahead, and none is ahead of the one before it. That holds in a child's copy of a moment, too.
#include "report.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

enum { kPage = 4096, kStill = 1500, kMoving = 1000, kThreads = 2, kWords = 4, kGenerations = 3, kChildren = 4 };

static unsigned char* g_still;                 // pages that only the process's main thread changes
static volatile uint64_t* g_moving[kThreads];  // pages of each writer
static volatile int g_stop;
static int g_reports[2];

static volatile uint64_t* word(int thread, int page, int number) {
  return g_moving[thread] + (size_t)page * (kPage / 8) + (size_t)number * (kPage / 8 / kWords);
}

static void* writer(void* argument) {
  int thread = (int)(intptr_t)argument;
  unsigned page = 0;
  while (!g_stop) {
    page = (page * 29 + 17) % kMoving;
    uint64_t next = *word(thread, (int)page, 0) + 1;
    for (int number = 0; number < kWords; ++number) *word(thread, (int)page, number) = next;
  }
  return NULL;
}

static void mend_after_fork(void) {  // a writer that does not exist here was stopped within a page
  for (int thread = 0; thread < kThreads; ++thread)
    for (int page = 0; page < kMoving; ++page)
      for (int number = 1; number < kWords; ++number) *word(thread, page, number) = *word(thread, page, 0);
}

static void check_moving(void) {
  for (int thread = 0; thread < kThreads; ++thread)
    for (int page = 0; page < kMoving; ++page) {
      uint64_t first = *word(thread, page, 0), last = *word(thread, page, kWords - 1);
      CHECK(first == last || first == last + 1);
      for (int number = 1; number < kWords; ++number)
        CHECK(*word(thread, page, number) == first || *word(thread, page, number) == last);
    }
}

static void fill_still(unsigned seed) {
  for (int page = 0; page < kStill; ++page)
    memset(g_still + (size_t)page * kPage, (int)(seed + (unsigned)page) % 251, kPage);
}
static void check_still(unsigned seed) {
  for (int page = 0; page < kStill; ++page)
    for (int i = 0; i < kPage; i += 1365)
      CHECK(g_still[(size_t)page * kPage + (size_t)i] == (seed + (unsigned)page) % 251);
}

static void nap(unsigned* random) {
  struct timespec time = {0, (long)(rand_r(random) % 30) * 1000000};
  nanosleep(&time, NULL);
}

static void generation(int depth, unsigned seed);

static void in_child(int depth, unsigned parents_seed, unsigned seed) {
  alarm(90);
  check_still(parents_seed);
  check_moving();
  mend_after_fork();
  g_stop = 0;
  generation(depth, seed);
  CHECK(write(g_reports[1], "e", 1) == 1);
  _exit(0);
}

// Its threads write; it forks, changes what it has, and checks that its children did not.
static void generation(int depth, unsigned seed) {
  pthread_t threads[kThreads];
  unsigned random = seed;
  fill_still(seed);
  for (intptr_t i = 0; i < kThreads; ++i) CHECK(pthread_create(&threads[i], NULL, writer, (void*)i) == 0);
  int children = depth == kGenerations ? 0 : depth == 0 ? kChildren : 1;
  for (int i = 0; i < children; ++i) {
    nap(&random);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) in_child(depth + 1, seed, seed * 7 + (unsigned)i + 1);
    CHECK(write(g_reports[1], "b", 1) == 1);
    check_still(seed);
    seed += 3;
    fill_still(seed);
  }
  nap(&random);
  g_stop = 1;
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  check_still(seed);
  check_moving();
}

int main(void) {
  check_preloaded();
  CHECK(pipe(g_reports) == 0);
  signal(SIGCHLD, SIG_IGN);  // nobody is waited for
  g_still = malloc((size_t)kStill * kPage);
  for (int i = 0; i < kThreads; ++i) {
    void* memory = mmap(NULL, (size_t)kMoving * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    g_moving[i] = memory;
  }
  generation(0, 1);
  close(g_reports[1]);
  int begun = 0, ended = 0;
  char report;
  while (read(g_reports[0], &report, 1) == 1) report == 'b' ? ++begun : ++ended;  // until the last has ended
  printf("%d descendants, %d found everything right\n", begun, ended);
  return begun == ended ? 0 : 3;
}
