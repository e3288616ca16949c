// Random allocation calls in several threads: results, errno, alignment, contents. Blocks go from thread to thread.
// Seed: HINTERLAND_TEST_SEED; calls a thread: HINTERLAND_TEST_CALLS.
#include "report.h"

#include <malloc.h>
#include <pthread.h>
#include <stdint.h>

enum { kThreads = 3, kSlots = 300, kShared = 64 };

struct Block {
  unsigned char* bytes;
  size_t size;
  unsigned char mark;
};

struct Worker {
  uint64_t random;
  uint64_t digest;
  long calls;
  struct Block blocks[kSlots];
};

static struct Block g_shared[kShared];  // handed over
static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;

static size_t draw(struct Worker* worker, size_t below) {
  worker->random = worker->random * 6364136223846793005u + 1442695040888963407u;
  return (size_t)(worker->random >> 20) % below;
}

static void record(struct Worker* worker, uint64_t value) {
  worker->digest = (worker->digest ^ value) * 0x9e3779b97f4a7c15u;
}

static size_t draw_size(struct Worker* worker) {
  switch (draw(worker, 40)) {
    case 0:
      return 0;
    case 1:
      return 1 + draw(worker, (size_t)3 << 20);
    case 2:
    case 3:
    case 4:
      return 1 + draw(worker, 100000);
    default:
      return 1 + draw(worker, 700);
  }
}

static void check(const struct Block* block) {
  size_t step = block->size > 5000 ? 509 : 1;
  for (size_t i = 0; i < block->size; i += step) CHECK(block->bytes[i] == block->mark);
  if (block->size > 0) CHECK(block->bytes[block->size - 1] == block->mark);
}

static void fill(struct Worker* worker, struct Block* block, void* bytes, size_t size) {
  CHECK(bytes != NULL && malloc_usable_size(bytes) >= size);
  *block = (struct Block){bytes, size, (unsigned char)(1 + draw(worker, 255))};
  memset(bytes, block->mark, size);
}

static void* allocate(struct Worker* worker, size_t* size) {
  size_t alignment = (size_t)8 << draw(worker, 13);
  void* bytes = NULL;
  *size = draw_size(worker);
  switch (draw(worker, 9)) {
    case 0:
    case 1:
      bytes = calloc(1 + *size / 8, 8);
      *size = (1 + *size / 8) * 8;
      for (size_t i = 0; i < *size; i += *size > 5000 ? 251 : 1) CHECK(((unsigned char*)bytes)[i] == 0);
      return bytes;
    case 2:
      CHECK(posix_memalign(&bytes, alignment, *size) == 0 && (uintptr_t)bytes % alignment == 0);
      return bytes;
    case 3:
      bytes = aligned_alloc(alignment, *size);
      CHECK((uintptr_t)bytes % alignment == 0);
      return bytes;
    case 4:
      bytes = memalign(alignment, *size);
      CHECK((uintptr_t)bytes % alignment == 0);
      return bytes;
    case 5:
      bytes = draw(worker, 2) ? valloc(*size) : pvalloc(*size);
      CHECK((uintptr_t)bytes % 4096 == 0);
      return bytes;
    case 6:
      return reallocarray(NULL, *size, 1);
    default:
      bytes = malloc(*size);
      CHECK((uintptr_t)bytes % 16 == 0);
      return bytes;
  }
}

// What must fail, and leave the block and everything else as it was.
static void fail(struct Worker* worker, struct Block* block) {
  static volatile size_t huge = PTRDIFF_MAX;
  void *out = (void*)16, *result = NULL;
  int error = 0;
  errno = 0;
  unsigned which = (unsigned)draw(worker, 12);
  switch (which) {
    case 0:
      result = malloc(huge - draw(worker, 10000));
      break;
    case 1:
      result = malloc(huge + 1 + draw(worker, huge / 2));
      break;
    case 2:
      result = calloc(huge / 2, 4 + draw(worker, 9));
      break;
    case 3:
      result = calloc(huge / 16, 32 + draw(worker, 3));
      break;
    case 4:
      result = realloc(block->bytes, huge - draw(worker, 4096));
      break;
    case 5:
      result = reallocarray(block->bytes, huge, 2 + draw(worker, 7));
      break;
    case 6:
      error = posix_memalign(&out, 24, 100);
      break;
    case 7:
      error = posix_memalign(&out, draw(worker, 8), 100);
      break;
    case 8:
      error = posix_memalign(&out, 64, huge - draw(worker, 100));
      break;
    case 9:
      result = memalign(128, huge);
      break;
    case 10:
      result = pvalloc(huge - draw(worker, 100));
      break;
    default:
      result = valloc(huge);
  }
  CHECK(result == NULL && out == (void*)16);
  if (block->bytes != NULL) check(block);
  record(worker, which * 1000 + (uint64_t)(error * 7 + (error == 0 ? errno : 0)));
}

static void resize(struct Worker* worker, struct Block* block) {
  size_t size = draw_size(worker), kept = size < block->size ? size : block->size;
  if (size == 0) {
    record(worker, realloc(block->bytes, 0) == NULL);
    block->bytes = NULL;
    return;
  }
  struct Block now = {draw(worker, 2) ? realloc(block->bytes, size) : reallocarray(block->bytes, 1, size), kept,
                      block->mark};
  CHECK(now.bytes != NULL);
  check(&now);
  fill(worker, block, now.bytes, size);
}

static void hand_over(struct Worker* worker, struct Block* block) {
  pthread_mutex_lock(&g_mutex);
  struct Block* place = &g_shared[draw(worker, kShared)];
  struct Block other = *place;
  *place = *block;
  pthread_mutex_unlock(&g_mutex);
  *block = other;
}

static void* work(void* argument) {
  struct Worker* worker = argument;
  for (long call = 0; call < worker->calls; ++call) {
    struct Block* block = &worker->blocks[draw(worker, kSlots)];
    size_t kind = draw(worker, 20), size = 0;
    if (kind == 0) {
      fail(worker, block);
    } else if (kind == 1) {
      hand_over(worker, block);
    } else if (block->bytes == NULL) {
      void* bytes = allocate(worker, &size);
      fill(worker, block, bytes, size);
    } else if (kind < 8) {
      resize(worker, block);
    } else {
      check(block);
      errno = 55;
      free(block->bytes);
      CHECK(errno == 55);
      block->bytes = NULL;
    }
  }
  for (unsigned i = 0; i < kSlots; ++i) {
    if (worker->blocks[i].bytes == NULL) continue;
    check(&worker->blocks[i]);
    free(worker->blocks[i].bytes);
  }
  return NULL;
}

int main(void) {
  check_preloaded();
  const char *seed = getenv("HINTERLAND_TEST_SEED"), *calls = getenv("HINTERLAND_TEST_CALLS");
  uint64_t first = seed != NULL ? strtoull(seed, NULL, 0) : 20261121;
  printf("HINTERLAND_TEST_SEED=%llu\n", (unsigned long long)first);
  static struct Worker workers[kThreads];
  pthread_t threads[kThreads];
  for (unsigned i = 0; i < kThreads; ++i) {
    workers[i].random = (first + i) * 0x9e3779b97f4a7c15u;
    workers[i].calls = calls != NULL ? atol(calls) : 20000;
    CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  }
  for (unsigned i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  for (unsigned i = 0; i < kShared; ++i) {
    if (g_shared[i].bytes != NULL) check(&g_shared[i]);
    free(g_shared[i].bytes);
  }
  puts("every block right");
  return 0;
}
