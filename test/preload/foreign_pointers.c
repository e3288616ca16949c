// Memory from glibc's own allocator, as programs have it that call __libc_malloc: free, realloc and
// malloc_usable_size take it.
#include "report.h"

#include <malloc.h>

extern void* __libc_malloc(size_t);
extern void* __libc_memalign(size_t, size_t);

int main(void) {
  check_preloaded();
  for (size_t size = 1; size < ((size_t)1 << 22); size *= 3) {
    free(__libc_malloc(size));
    unsigned char* block = __libc_malloc(size);
    CHECK(malloc_usable_size(block) >= size);
    memset(block, (int)(size % 251), size);
    block = realloc(block, size * 2);
    for (size_t i = 0; i < size; ++i) CHECK(block[i] == size % 251);
    block = realloc(block, size / 2 + 1);
    CHECK(block[0] == size % 251);
    free(block);
    free(__libc_memalign(4096, size));
  }
  void* block = __libc_malloc(10);
  printf("%d\n", realloc(block, 0) == NULL);
  // Lines that libc itself allocates.
  char* text = NULL;
  CHECK(asprintf(&text, "%0200d", 5) == 200);
  text = realloc(text, 100000);
  printf("%.20s\n", text);
  free(text);
  return 0;
}
