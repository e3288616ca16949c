// Threads that may be cancelled at any instruction (PTHREAD_CANCEL_ASYNCHRONOUS) are, while they compute in far
// memory: also at a fault. Their cleanup handlers run, and read far memory.
#include "far_bytes.h"

#include <pthread.h>
#include <unistd.h>

enum { kThreads = 4 };

static char* far;
static unsigned long turns, cleaned, right;

static unsigned long all_turns(void) { return __atomic_load_n(&turns, __ATOMIC_RELAXED); }

static uint64_t word_of(size_t page) { return (page + 1) * 0x9e3779b97f4a7c15u; }

static void clean(void* argument) {
  const size_t page = (size_t)argument * 977 % PAGES;
  __atomic_fetch_add(&cleaned, 1, __ATOMIC_RELAXED);
  if (*(uint64_t*)(far + page * PAGE) == word_of(page)) __atomic_fetch_add(&right, 1, __ATOMIC_RELAXED);
}

static void* compute(void* argument) {
  uint32_t at = (uint32_t)(size_t)argument * 77777 + 1;
  volatile uint64_t sum = 0;
  pthread_cleanup_push(clean, argument);
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  for (;;) {
    at = at * 1664525 + 1013904223;
    sum += *(uint64_t*)(far + (at >> 8) % PAGES * PAGE);
    __atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED);
  }
  pthread_cleanup_pop(0);
  return NULL;
}

int main(void) {
  check_preloaded();
  far = new_bytes();
  unsigned long cancelled = 0;
  for (size_t round = 0; round < 150; ++round) {
    pthread_t threads[kThreads];
    for (size_t i = 0; i < kThreads; ++i)
      CHECK(pthread_create(&threads[i], NULL, compute, (void*)(round * kThreads + i)) == 0);
    for (unsigned long before = all_turns(); all_turns() - before < 50;) usleep(100);
    for (size_t i = 0; i < kThreads; ++i) CHECK(pthread_cancel(threads[i]) == 0);
    for (size_t i = 0; i < kThreads; ++i) {
      void* result;
      CHECK(pthread_join(threads[i], &result) == 0);
      cancelled += result == PTHREAD_CANCELED;
    }
  }
  printf("%lu cancelled, %lu cleaned up, %lu with the right bytes\n", cancelled, cleaned, right);
  count_right("at the end", far);
  return 0;
}
