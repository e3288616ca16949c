// A program with an allocator of its own, which is not ready before main(): until then it can give memory out, as
// GCL's can, but takes none back. The loader does both in the program's allocator where a lookup of a function fails.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static _Alignas(16) char g_memory[32 << 20];
static size_t g_used, g_freed_before_main;
static int g_ready;

EXPORTED void* malloc(size_t bytes) {
  size_t at = __atomic_fetch_add(&g_used, 16 + (bytes + 15) / 16 * 16, __ATOMIC_RELAXED);
  if (at + 16 + bytes > sizeof g_memory) return NULL;
  memcpy(g_memory + at, &bytes, sizeof bytes);
  return g_memory + at + 16;
}

EXPORTED void* calloc(size_t count, size_t bytes) { return malloc(count * bytes); }  // never used before: zeros

EXPORTED void* realloc(void* block, size_t bytes) {
  void* other = malloc(bytes);
  size_t before = 0;
  if (block != NULL && other != NULL) {
    memcpy(&before, (char*)block - 16, sizeof before);
    memcpy(other, block, before < bytes ? before : bytes);
  }
  return other;
}

EXPORTED void free(void* block) {
  if (block != NULL && !g_ready) ++g_freed_before_main;
}

int main(void) {
  g_ready = 1;
  if (getenv("EXPECT_PRELOADED") != NULL)
    printf("freed before main: %zu\n", g_freed_before_main);
  else
    puts("freed before main: 0");  // the run that this one is compared with may have libraries beside it, too
  char* text = strdup("allocated by the program");
  puts(text);
  free(text);
  return 0;
}
