// Results and errno of the allocation calls at their edges.
#include "report.h"

#include <malloc.h>
#include <stdint.h>

static volatile size_t kHuge = PTRDIFF_MAX;

static void show(const char* what, void* block) {
  printf("%s: %s errno %d\n", what, block != NULL ? "block" : "null", block != NULL ? 0 : errno);
  free(block);
  errno = 0;
}

static void show_posix(size_t alignment, size_t size) {
  void* block = (void*)0x10;
  errno = 5;
  int error = posix_memalign(&block, alignment, size);
  printf("posix_memalign(%zu, %zu): %d untouched %d errno %d aligned %d\n", alignment, size, error,
         block == (void*)0x10, errno, error == 0 && (uintptr_t)block % alignment == 0);
  if (error == 0) free(block);
  errno = 0;
}

static void sizes_and_alignment(void) {
  static unsigned char* blocks[4000];
  for (size_t size = 0; size < 4000; ++size) {
    blocks[size] = malloc(size);
    CHECK(blocks[size] != NULL && (uintptr_t)blocks[size] % 16 == 0 && malloc_usable_size(blocks[size]) >= size);
    memset(blocks[size], (int)size, size);
  }
  for (size_t size = 0; size < 4000; ++size) {
    for (size_t i = 0; i < size; ++i) CHECK(blocks[size][i] == (unsigned char)size);
    blocks[size] = realloc(blocks[size], size * 3 + 1);
    for (size_t i = 0; i < size; ++i) CHECK(blocks[size][i] == (unsigned char)size);
  }
  for (size_t size = 0; size < 4000; ++size) free(blocks[size]);
}

static void zeroed_again(void) {
  for (size_t size = 64; size < ((size_t)64 << 20); size *= 4) {
    unsigned char* block = malloc(size);
    memset(block, 0xa5, size);
    free(block);
    block = calloc(size / 8, 8);
    for (size_t i = 0; i < size; ++i) CHECK(block[i] == 0);
    free(block);
  }
}

static void keeps_errno(void) {
  errno = 77;
  for (size_t size = 16; size < ((size_t)32 << 20); size *= 2) free(malloc(size));
  printf("errno after free: %d\n", errno);
  errno = 0;
}

int main(void) {
  check_preloaded();
  show("malloc(0)", malloc(0));
  void *a = malloc(0), *b = malloc(0);
  printf("malloc(0) unique: %d\n", a != b);
  free(a);
  free(b);
  show("malloc(huge)", malloc(kHuge));
  show("malloc(huge+1)", malloc(kHuge + 1));
  show("malloc(-1)", malloc((size_t)-1 + kHuge - PTRDIFF_MAX));
  show("calloc overflow", calloc(kHuge, 4));
  show("calloc(0, 8)", calloc(0, 8));
  show("calloc(huge, 1)", calloc(kHuge, 1));
  show("realloc(null, 10)", realloc(NULL, 10));
  show("realloc(null, huge)", realloc(NULL, kHuge));
  void* kept = malloc(100);
  memset(kept, 7, 100);
  void* volatile same = kept;  // not to be called a use after free: the calls fail
  void* grown = realloc(kept, kHuge);
  printf("realloc to huge: %d errno %d, kept %d\n", grown == NULL, errno, ((char*)same)[99]);
  errno = 0;
  grown = reallocarray(same, kHuge, 3);
  printf("reallocarray overflow: %d errno %d\n", grown == NULL, errno);
  kept = reallocarray(same, 50, 4);
  printf("reallocarray kept %d\n", ((char*)kept)[99]);
  errno = 0;
  grown = realloc(kept, 0);
  printf("realloc to 0: %d errno %d\n", grown == NULL, errno);
  for (size_t alignment = 0; alignment <= 64; ++alignment) show_posix(alignment, 100);
  show_posix(4096, 0);
  show_posix(1 << 20, 10);
  show_posix((size_t)1 << 63, 10);
  show_posix(64, kHuge);
  show_posix(64, (size_t)kHuge + 10);
  show("aligned_alloc(24, 100)", aligned_alloc(24, 100));
  show("aligned_alloc(0, 100)", aligned_alloc(0, 100));
  show("memalign(3 pages)", memalign(3 * 4096, 100));
  show("memalign(too large)", memalign(kHuge + 10, 100));
  show("memalign(huge size)", memalign(64, kHuge));
  show("valloc", valloc(1));
  show("pvalloc", pvalloc(4097));
  show("pvalloc(0)", pvalloc(0));
  show("pvalloc(huge)", pvalloc(kHuge));
  void* page = pvalloc(4097);
  printf("pvalloc: aligned %d, size %d\n", (uintptr_t)page % 4096 == 0, malloc_usable_size(page) >= 8192);
  free(page);
  void* aligned = memalign(1 << 16, 5000);
  aligned = realloc(aligned, 100000);
  CHECK(aligned != NULL);
  free(aligned);
  printf("usable(null): %zu\n", malloc_usable_size(NULL));
  printf("mallopt: %d\n", mallopt(M_MMAP_THRESHOLD, 1 << 20));
  malloc_trim(0);
  free(NULL);
  sizes_and_alignment();
  zeroed_again();
  keeps_errno();
  puts("done");
  return 0;
}
