// Loaded by early_and_late: allocates, has thread-local data and a fork handler that must go when it is unloaded.
#include "report.h"

#include <pthread.h>

static __thread char t_data[100000];

static void in_parent(void) { printf("plugin's handler\n"); }

__attribute__((constructor)) static void loaded(void) { pthread_atfork(NULL, in_parent, NULL); }

char* plugin_make(size_t size);
char* plugin_make(size_t size) {
  char* block = malloc(size);
  memset(block, 42, size);
  memset(t_data, 1, sizeof t_data);
  return block;
}
