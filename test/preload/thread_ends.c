// The process ends when its last thread does, with exit handlers and status 0: pthread_exit in main, then others that
// end in each way there is.
#include "report.h"

#include <pthread.h>
#include <threads.h>
#include <time.h>

static pthread_key_t g_key;

static void at_end(void) {
  void* block = malloc(1000);
  printf("exit handler, block %d\n", block != NULL);
  free(block);
}

static void destroy(void* value) {
  free(value);
  void* block = malloc(300000);  // allocation in a destructor of thread data
  memset(block, 1, 300000);
  free(block);
}

static void* returns(void* argument) {
  pthread_setspecific(g_key, malloc(5000));
  return argument;
}
static void* exits(void* argument) {
  pthread_setspecific(g_key, malloc(5000));
  pthread_exit(argument);
}
static void* is_cancelled(void* argument) {
  for (;;) nanosleep(&(struct timespec){1, 0}, NULL);
  return argument;
}
static int c11(void* argument) {
  free(malloc(100));
  return *(int*)argument;
}
static void* last(void* argument) {
  pthread_join(*(pthread_t*)argument, NULL);  // main has ended
  nanosleep(&(struct timespec){0, 50000000}, NULL);
  printf("last thread\n");
  return NULL;
}

int main(void) {
  check_preloaded();
  static pthread_t main_thread;
  main_thread = pthread_self();
  atexit(at_end);
  CHECK(pthread_key_create(&g_key, destroy) == 0);
  pthread_setspecific(g_key, malloc(100));
  pthread_t thread;
  void* result;
  for (size_t i = 0; i < 20; ++i) {
    CHECK(pthread_create(&thread, NULL, i % 2 ? returns : exits, (void*)i) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    printf("joined %zu\n", (size_t)result);
  }
  CHECK(pthread_create(&thread, NULL, is_cancelled, NULL) == 0);
  CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
  printf("cancelled %d\n", result == PTHREAD_CANCELED);
  thrd_t c11_thread;
  int value = -5, answer = 0;
  CHECK(thrd_create(&c11_thread, c11, &value) == thrd_success);
  CHECK(thrd_join(c11_thread, &answer) == thrd_success);
  printf("c11 %d\n", answer);
  CHECK(pthread_create(&thread, NULL, last, &main_thread) == 0);
  pthread_exit(NULL);
}
