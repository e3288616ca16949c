// The kernel takes pages that the same thread has just begun to fetch, or leaves them to threads that wait for them
// while the one that began sleeps in the kernel, or has ended: a fetch must not need whoever began it.
#include "common.h"

#include <hinterland/hint.h>
#include <pthread.h>
#include <sys/wait.h>

enum { kPage = 4096, kPipePages = 8 };

static char* g_memory;
static int g_pipe[2];

// Bytes of the page at `offset` that come out of a pipe other than they went in.
static size_t through_pipe(const char* memory, size_t offset) {
  static __thread uint64_t back[kPipePages * kPage / 8];
  CHECK(write(g_pipe[1], memory + offset, sizeof back) == sizeof back);
  CHECK(read(g_pipe[0], back, sizeof back) == sizeof back);
  return memcmp(back, memory + offset, sizeof back) != 0;
}

static void kernel_takes_what_is_on_its_way(size_t bytes) {
  size_t wrong = 0;
  for (size_t offset = 0; offset + kPipePages * kPage <= bytes; offset += kPipePages * kPage) {
    hl_prefetch(g_memory + offset, kPipePages * kPage);
    wrong += through_pipe(g_memory, offset);
  }
  printf("pieces wrong: %zu\n", wrong);
}

static void* begin_and_end(void* offset) {
  hl_prefetch(g_memory + (size_t)offset, kPipePages * kPage);
  return NULL;
}

static void whoever_began_has_ended(size_t bytes) {
  size_t wrong = 0;
  for (size_t offset = 0; offset + kPipePages * kPage <= bytes; offset += 16 * kPipePages * kPage) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, begin_and_end, (void*)offset) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    wrong += through_pipe(g_memory, offset);
  }
  printf("pieces wrong: %zu\n", wrong);
}

// The parent sleeps until the child has ended, whatever comes for it in the meantime.
__attribute__((noinline)) static int status_of_child_that_reads(const volatile uint64_t* word, uint64_t expected) {
  pid_t child = vfork();
  CHECK(child >= 0);
  if (child == 0) _exit(*word == expected ? 0 : 1);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  return status;
}

static void whoever_began_sleeps(size_t bytes) {
  size_t wrong = 0;
  for (size_t offset = 0; offset + kPage <= bytes; offset += bytes / 16) {
    hl_prefetch(g_memory + offset, kPage);
    wrong += status_of_child_that_reads((uint64_t*)(g_memory + offset), word_at(offset / 8, 7)) != 0;
  }
  printf("children wrong: %zu\n", wrong);
}

int main(void) {
  check_preloaded();
  size_t bytes = big_bytes();
  g_memory = big_mmap(bytes);
  CHECK(pipe(g_pipe) == 0);
  fill(g_memory, bytes, 7);
  kernel_takes_what_is_on_its_way(bytes);
  whoever_began_has_ended(bytes);
  whoever_began_sleeps(bytes);
  printf("words wrong: %zu\n", wrong_words(g_memory, bytes, 7));
  return 0;
}
