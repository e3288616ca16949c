// Threads whose stacks are far memory call the runtime at every depth, while the stack below them is gone: the next
// frame, wherever in the runtime that is, faults. With one of the pager's locks in hand it would wait for ever.
#include "report.h"

#include <alloca.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { kStack = 1 << 20, kBytes = 512 << 10, kPage = 4096, kStep = 48, kBelow = 64 << 10, kPatience = 150 };

static char* g_bytes;
static atomic_uintptr_t g_depth;  // where the thread's stack ends, when it is about to call
static atomic_int g_may_call, g_done;

static void* fresh(size_t bytes) {
  void* mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(mapped != MAP_FAILED);
  return mapped;
}

static void fill(void) {
  for (int at = 0; at < kBytes; at += kPage) g_bytes[at] = (char)(at / kPage + 1);
}
static int sum(void) {
  int found = 0;
  for (int at = 0; at < kBytes; at += kPage) found += g_bytes[at];
  return found;
}

static int advise(void) { return madvise(g_bytes, kBytes, MADV_DONTNEED); }
static int map_again(void) {
  if (munmap(g_bytes, kBytes) != 0) return -1;
  return mmap(g_bytes, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == g_bytes
             ? 0
             : -1;
}
static int protect(void) {
  return mprotect(g_bytes, kBytes, PROT_READ) | mprotect(g_bytes, kBytes, PROT_READ | PROT_WRITE);
}
static int move(void) {
  char* moved = mremap(g_bytes, kBytes, 2 * kBytes, MREMAP_MAYMOVE);
  if (moved == MAP_FAILED) return -1;
  g_bytes = moved;
  return munmap(g_bytes + kBytes, kBytes);
}
static int allocate(void) {
  char* block = malloc(4 << 20);
  if (block == NULL) return -1;
  memset(block, 1, 64 << 10);
  free(block);
  return 0;
}
static int make_child(void) {
  pid_t child = fork();
  if (child == 0) _exit(sum() & 0x7f);
  int status;
  return child > 0 && waitpid(child, &status, 0) == child ? status >> 8 : -1;
}

static const struct {
  const char* name;
  int (*call)(void);
  int step;  // of the depth, in bytes
} kCalls[] = {{"madvise", advise, kStep}, {"munmap and mmap", map_again, kStep}, {"mprotect", protect, kStep},
              {"mremap", move, kStep},    {"malloc and free", allocate, kStep},  {"fork", make_child, 16 * kStep}};

// Waits until nothing of the stack below is there any more.
static void lose_the_stack_below(void* here) {
  atomic_store(&g_may_call, 0);
  atomic_store(&g_depth, (uintptr_t)here);
  while (!atomic_load(&g_may_call)) {
  }
}

static __attribute__((noinline)) int call_at(int depth, int (*call)(void)) {
  volatile char* room = alloca((size_t)depth + 16);
  room[0] = 1;
  fill();
  lose_the_stack_below((void*)room);
  return call();
}

static void* on_far_stack(void* unused) {
  for (unsigned i = 0; i < sizeof kCalls / sizeof *kCalls; ++i) {
    long results = 0;
    for (int depth = 0; depth < 2 * kPage; depth += kCalls[i].step) results += call_at(depth, kCalls[i].call);
    fill();
    printf("%s: %ld, sum %d\n", kCalls[i].name, results, sum());
  }
  atomic_store(&g_done, 1);
  return unused;
}

static void take_away(uintptr_t depth) {
  uintptr_t end = (depth - 256) & ~(uintptr_t)(kPage - 1);  // what the waiting thread stands on stays
  CHECK(madvise((void*)(end - kBelow), kBelow, MADV_DONTNEED) == 0);
}

int main(void) {
  check_preloaded();
  alarm(kPatience);
  g_bytes = fresh(kBytes);
  memset(fresh(24 << 20), 1, 24 << 20);  // more than is local
  pthread_attr_t attributes;
  pthread_t thread;
  CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, fresh(kStack), kStack) == 0);
  CHECK(pthread_create(&thread, &attributes, on_far_stack, NULL) == 0);
  while (!atomic_load(&g_done)) {
    uintptr_t depth = atomic_exchange(&g_depth, 0);
    if (depth == 0) continue;
    take_away(depth);
    atomic_store(&g_may_call, 1);
  }
  CHECK(pthread_join(thread, NULL) == 0);
  printf("ended\n");
  return 0;
}
