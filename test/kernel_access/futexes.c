// Futex words, condition variables and robust mutexes in far memory, private to the process; threads whose stacks,
// and with them what the kernel writes when they end, are far.
#include "common.h"

#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>

struct Shared {
  pthread_mutex_t mutex;
  char apart[4096];
  pthread_cond_t changed;
  char apart_too[4096];
  int turn;
  int rounds[2];
};

struct Player {
  struct Shared* shared;
  int me;
};

static void* play(void* argument) {
  struct Player* player = argument;
  struct Shared* shared = player->shared;
  for (int round = 0; round < 100; ++round) {
    pthread_mutex_lock(&shared->mutex);
    while (shared->turn != player->me) pthread_cond_wait(&shared->changed, &shared->mutex);
    ++shared->rounds[player->me];
    shared->turn = !player->me;
    pthread_cond_broadcast(&shared->changed);
    pthread_mutex_unlock(&shared->mutex);
    if (round % 20 == player->me) push_out();
  }
  return NULL;
}

static void condition_variables(void) {
  struct Shared* shared = big_mmap(sizeof *shared);
  pthread_mutex_init(&shared->mutex, NULL);
  pthread_cond_init(&shared->changed, NULL);
  pthread_t threads[2];
  struct Player players[2] = {{shared, 0}, {shared, 1}};
  for (int i = 0; i < 2; ++i) CHECK(pthread_create(&threads[i], NULL, play, &players[i]) == 0);
  for (int i = 0; i < 2; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  printf("rounds %d %d\n", shared->rounds[0], shared->rounds[1]);
  push_out();
  pthread_mutex_lock(&shared->mutex);
  struct timespec soon;
  clock_gettime(CLOCK_REALTIME, &soon);
  soon.tv_nsec += 1000000;
  soon.tv_sec += soon.tv_nsec / 1000000000;
  soon.tv_nsec %= 1000000000;
  printf("timed wait %d\n", pthread_cond_timedwait(&shared->changed, &shared->mutex, &soon));
  pthread_mutex_unlock(&shared->mutex);
}

static void raw_futexes(void) {
  uint32_t* word = (uint32_t*)((char*)big_mmap(8192) + 4092);
  uint32_t* other = word + 1;
  *word = 5;
  *other = 6;
  push_out();
  struct timespec* limit = (struct timespec*)((char*)big_mmap(4096) + 64);
  *limit = (struct timespec){0, 1000000};
  push_out();
  long result = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 4, limit, NULL, 0);
  printf("another value %ld, %d\n", result, errno == EAGAIN);
  push_out();
  result = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 5, limit, NULL, 0);
  printf("nobody comes %ld, %d\n", result, errno == ETIMEDOUT);
  push_out();
  result = syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, other, 5);
  printf("requeue %ld\n", result);
  *other = 6;  // the kernel does not wait for a fault here: documented
  result =
      syscall(SYS_futex, word, FUTEX_WAKE_OP_PRIVATE, 1, 1, other, FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 6));
  printf("wake op %ld, %u\n", result, *other);
}

enum { kRobust = 50 };
struct Robust {
  pthread_mutex_t mutexes[kRobust][64];  // each on a page of its own, nearly
};

static void* die_with_mutexes(void* argument) {
  struct Robust* robust = argument;
  for (int i = 0; i < kRobust; ++i) CHECK(pthread_mutex_lock(&robust->mutexes[i][i % 3]) == 0);
  push_out();  // the list that the kernel has to walk is far when this thread ends
  push_out();
  return NULL;
}

static void robust_mutexes(int shared) {
  struct Robust* robust = big_mmap(sizeof *robust);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_setpshared(&attributes, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
  for (int i = 0; i < kRobust; ++i) pthread_mutex_init(&robust->mutexes[i][i % 3], &attributes);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, die_with_mutexes, robust) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  int dead = 0, other = 0;
  for (int i = 0; i < kRobust; ++i) {
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += other == 0 ? 2 : 0;
    int result = pthread_mutex_timedlock(&robust->mutexes[i][i % 3], &limit);
    dead += result == EOWNERDEAD;
    other += result != EOWNERDEAD;
    if (result == EOWNERDEAD) {
      pthread_mutex_consistent(&robust->mutexes[i][i % 3]);
      pthread_mutex_unlock(&robust->mutexes[i][i % 3]);
    }
  }
  printf("robust %d: owner died %d, other %d\n", shared, dead, other);
  munmap(robust, sizeof *robust);
}

static void* waits_for_robust(void* argument) {
  pthread_mutex_t* mutex = argument;
  int result = pthread_mutex_lock(mutex);
  if (result == EOWNERDEAD) pthread_mutex_consistent(mutex);
  pthread_mutex_unlock(mutex);
  return (void*)(intptr_t)result;
}

static sem_t g_locked;

static void* dies_while_waited_for(void* argument) {
  pthread_mutex_t* mutex = argument;
  CHECK(pthread_mutex_lock(mutex) == 0);
  sem_post(&g_locked);
  while ((__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) & (int)FUTEX_WAITERS) == 0)
    nanosleep(&(struct timespec){0, 1000000}, NULL);
  push_out();
  pthread_exit(NULL);
}

static void robust_with_a_waiter(void) {
  pthread_mutex_t* mutex = big_mmap(4096);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(mutex, &attributes);
  pthread_t owner, waiter;
  void* result;
  sem_init(&g_locked, 0, 0);
  CHECK(pthread_create(&owner, NULL, dies_while_waited_for, mutex) == 0);
  CHECK(sem_wait(&g_locked) == 0);
  CHECK(pthread_create(&waiter, NULL, waits_for_robust, mutex) == 0);
  CHECK(pthread_join(owner, NULL) == 0 && pthread_join(waiter, &result) == 0);
  printf("the waiter got %d\n", (int)(intptr_t)result == EOWNERDEAD);
}

// A mutex that passes its owner's priority on is handed over by the kernel, which writes the word itself.
static void* inherit(void* argument) {
  pthread_mutex_t* mutex = argument;
  int* count = (int*)(mutex + 1);
  for (int i = 0; i < 60; ++i) {
    int result = pthread_mutex_lock(mutex);
    if (result != 0) return (void*)(intptr_t)result;
    ++*count;
    if (i % 10 == 0) push_out();
    pthread_mutex_unlock(mutex);
  }
  return NULL;
}

static void inheriting_mutexes(void) {
  pthread_mutex_t* mutex = big_mmap(4096);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  CHECK(pthread_mutex_init(mutex, &attributes) == 0);
  pthread_t threads[3];
  void* result;
  for (int i = 0; i < 3; ++i) CHECK(pthread_create(&threads[i], NULL, inherit, mutex) == 0);
  for (int i = 0; i < 3; ++i) {
    CHECK(pthread_join(threads[i], &result) == 0);
    printf("inheriting: %d\n", (int)(intptr_t)result);
  }
  printf("count %d, destroy %d\n", *(int*)(mutex + 1), pthread_mutex_destroy(mutex));
}

static pthread_barrier_t g_barrier;

static void* on_far_stack(void* argument) {
  volatile char frame[20000];
  memset((char*)frame, 3, sizeof frame);
  pthread_barrier_wait(&g_barrier);  // meanwhile the stack goes far
  pthread_barrier_wait(&g_barrier);
  long sum = 0;
  for (size_t i = 0; i < sizeof frame; ++i) sum += frame[i];
  return (void*)(sum + (long)(intptr_t)argument);
}

static void far_stacks(void) {
  enum { kThreads = 16, kStack = 128 << 10 };
  long sum = 0;
  for (int round = 0; round < 2; ++round) {
    char* stacks = round % 2 ? big_mmap((size_t)kThreads * kStack) : aligned_alloc(4096, (size_t)kThreads * kStack);
    pthread_t threads[kThreads];
    pthread_barrier_init(&g_barrier, NULL, kThreads + 1);
    for (int i = 0; i < kThreads; ++i) {
      pthread_attr_t attributes;
      pthread_attr_init(&attributes);
      CHECK(pthread_attr_setstack(&attributes, stacks + (size_t)i * kStack, kStack) == 0);
      CHECK(pthread_create(&threads[i], &attributes, on_far_stack, (void*)(intptr_t)i) == 0);
    }
    pthread_barrier_wait(&g_barrier);
    push_out();
    pthread_barrier_wait(&g_barrier);
    push_out();  // they end meanwhile
    for (int i = 0; i < kThreads; ++i) {
      void* result;
      CHECK(pthread_join(threads[i], &result) == 0);
      sum += (long)(intptr_t)result;
    }
    pthread_barrier_destroy(&g_barrier);
    if (round % 2)
      munmap(stacks, (size_t)kThreads * kStack);
    else
      free(stacks);
  }
  printf("far stacks %ld\n", sum);
}

static void semaphores(void) {
  sem_t* semaphore = big_mmap(4096);
  sem_init(semaphore, 0, 0);
  struct timespec past = {1, 0};
  push_out();
  printf("semaphore %d", sem_timedwait(semaphore, &past));
  sem_post(semaphore);
  push_out();
  printf(" %d\n", sem_wait(semaphore));
}

int main(void) {
  check_preloaded();
  push_out();
  condition_variables();
  raw_futexes();
  robust_mutexes(0);
  robust_mutexes(1);
  robust_with_a_waiter();
  inheriting_mutexes();
  far_stacks();
  semaphores();
  return 0;
}
