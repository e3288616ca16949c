// A program that defines malloc itself, with a lock and memory of its own, as those with tcmalloc, mimalloc or
// PartitionAlloc linked in do. Its threads allocate all the time, map memory under that lock, and the program forks
// meanwhile. Nobody but the program may call its malloc: in a child that lock is held until the handlers of the
// program have run.
#include "report.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { kClasses = 24, kSmallest = 5, kThreads = 2, kForks = 150, kHeldPages = 1024, kPage = 4096 };

typedef struct Block {
  struct Block* next;
  size_t size_class;
} Block;  // 16 bytes before what the caller gets

static _Thread_local bool t_forks;  // the thread is in fork()
static atomic_int g_stray_calls;    // calls of malloc that the program does not make

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static Block* g_free[kClasses];  // guarded by g_lock
static char* g_room;             // guarded by g_lock
static size_t g_left;            // guarded by g_lock

static void* of_system(size_t bytes) {
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  return memory;
}

static bool in_thread_of_runtime(void) {
  char name[16];
  return prctl(PR_GET_NAME, name) == 0 && strncmp(name, "hl-", 3) == 0;
}

static Block* carve(size_t size_class) {
  size_t bytes = (size_t)1 << (size_class + kSmallest);
  if (bytes > g_left) {
    g_left = bytes > 65536 ? bytes : 65536;
    g_room = of_system(g_left);
  }
  Block* block = (Block*)g_room;
  g_room += bytes;
  g_left -= bytes;
  block->size_class = size_class;
  return block;
}

// What the loader and libc find in the place of libc's.
#pragma GCC visibility push(default)
void* malloc(size_t size) {
  if (t_forks || in_thread_of_runtime()) atomic_fetch_add(&g_stray_calls, 1);
  size_t size_class = 0;
  while (((size_t)1 << (size_class + kSmallest)) < size + sizeof(Block)) ++size_class;
  if (size_class >= kClasses) return NULL;
  pthread_mutex_lock(&g_lock);
  Block* block = g_free[size_class];
  if (block != NULL)
    g_free[size_class] = block->next;
  else
    block = carve(size_class);
  pthread_mutex_unlock(&g_lock);
  return block + 1;
}

void free(void* pointer) {
  if (pointer == NULL) return;
  Block* block = (Block*)pointer - 1;
  if (block->size_class >= kClasses) abort();  // not one of ours
  pthread_mutex_lock(&g_lock);
  block->next = g_free[block->size_class];
  g_free[block->size_class] = block;
  pthread_mutex_unlock(&g_lock);
}

void* calloc(size_t count, size_t size) {
  void* block = malloc(count * size);
  if (block != NULL) memset(block, 0, count * size);
  return block;
}

void* realloc(void* pointer, size_t size) {
  void* block = malloc(size);
  if (block == NULL || pointer == NULL) return block;
  size_t before = ((size_t)1 << (((Block*)pointer - 1)->size_class + kSmallest)) - sizeof(Block);
  memcpy(block, pointer, before < size ? before : size);
  free(pointer);
  return block;
}
#pragma GCC visibility pop

// As jemalloc and PartitionAlloc: the lock is free in a child.
static void lock(void) { pthread_mutex_lock(&g_lock); }
static void unlock(void) { pthread_mutex_unlock(&g_lock); }
__attribute__((constructor)) static void hold_lock_at_fork(void) { pthread_atfork(lock, unlock, unlock); }

static atomic_bool g_ends;

static void* allocate_all_the_time(void* argument) {
  unsigned seed = (unsigned)(uintptr_t)argument;
  char* held[64] = {0};
  while (!atomic_load(&g_ends)) {
    char** place = &held[rand_r(&seed) % 64];
    free(*place);
    size_t size = (size_t)rand_r(&seed) % 20000 + 1;
    *place = malloc(size);
    memset(*place, 1, size);
    // As an allocator that gives memory back under its lock.
    pthread_mutex_lock(&g_lock);
    munmap(of_system(64 * kPage), 64 * kPage);
    pthread_mutex_unlock(&g_lock);
  }
  return NULL;
}

// What each page must hold.
static void fill(char* memory) {
  for (int i = 0; i < kHeldPages; ++i) memory[(size_t)i * kPage] = (char)(i % 101);
}
static int wrong_pages(const char* memory) {
  int wrong = 0;
  for (int i = 0; i < kHeldPages; ++i) wrong += memory[(size_t)i * kPage] != (char)(i % 101);
  return wrong;
}

// What a child does: it allocates, and looks.
static int live_as_child(const char* memory) {
  t_forks = false;
  for (size_t size = 1; size < 100000; size = size * 3 + 1) {
    char* block = malloc(size);
    memset(block, 1, size);
    free(block);
  }
  return wrong_pages(memory) == 0 && atomic_load(&g_stray_calls) == 0 ? 0 : 1;
}

int main(void) {
  check_preloaded();
  char* memory = of_system((size_t)kHeldPages * kPage);
  fill(memory);
  pthread_t threads[kThreads];
  for (uintptr_t i = 0; i < kThreads; ++i)
    CHECK(pthread_create(&threads[i], NULL, allocate_all_the_time, (void*)(i + 1)) == 0);
  for (int i = 0; i < kForks; ++i) {
    t_forks = true;
    pid_t child = fork();
    if (child == 0) _exit(live_as_child(memory));
    t_forks = false;
    CHECK(child > 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  atomic_store(&g_ends, true);
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  printf("%d children, %d wrong pages, %d calls by others\n", kForks, wrong_pages(memory),
         atomic_load(&g_stray_calls));
  return 0;
}
