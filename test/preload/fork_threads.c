// fork in a process whose other threads allocate, print and open files all the time: the child can do all of that.
#include "report.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static int g_stop = 0;

static void* busy(void* argument) {
  unsigned seed = (unsigned)(size_t)argument;
  FILE* null = fopen("/dev/null", "w");
  CHECK(null != NULL);
  while (!__atomic_load_n(&g_stop, __ATOMIC_RELAXED)) {
    size_t size = 1 + rand_r(&seed) % 200000;
    char* block = malloc(size);
    memset(block, 1, size);
    fprintf(null, "%zu\n", size);
    FILE* file = fopen("/dev/zero", "r");
    if (file != NULL) fclose(file);
    free(block);
  }
  fclose(null);
  return NULL;
}

static void* child_thread(void* argument) {
  free(malloc(100000));
  return argument;
}

static void in_child(int number) {
  alarm(20);  // a lock held for ever shows as a death by signal
  for (int i = 0; i < 50; ++i) {
    void* block = malloc(50000);
    FILE* file = fopen("/dev/null", "w");
    CHECK(block != NULL && file != NULL);
    fprintf(file, "%d\n", i);
    fclose(file);
    free(block);
  }
  fflush(NULL);
  pthread_t thread;
  void* result;
  CHECK(pthread_create(&thread, NULL, child_thread, &g_stop) == 0);
  CHECK(pthread_join(thread, &result) == 0 && result == &g_stop);
  exit(number % 100);
}

int main(void) {
  check_preloaded();
  pthread_t threads[4];
  for (size_t i = 0; i < 4; ++i) CHECK(pthread_create(&threads[i], NULL, busy, (void*)(i + 1)) == 0);
  fflush(stdout);
  for (int i = 0; i < 60; ++i) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) in_child(i);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != i) printf("child %d: status %x\n", i, status);
  }
  __atomic_store_n(&g_stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 4; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  puts("done");
  return 0;
}
