// Loaded by early_and_late and past_our_functions: allocates, frees, gives memory back, has thread-local data and a
// fork handler that must go when it is unloaded.
#include "report.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

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

void plugin_free(void* block);
void plugin_free(void* block) { free(block); }

int plugin_drop(void* memory, size_t size);
int plugin_drop(void* memory, size_t size) { return madvise(memory, size, MADV_DONTNEED); }

// One that libc has, too: who asks this library for it gets this one.
int malloc_info(int options, FILE* file) { return file == NULL ? options : -1; }
