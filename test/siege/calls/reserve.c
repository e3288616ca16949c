// Programs that reserve more addresses than far memory has: MariaDB 8 TiB, Java with ZGC 16 times its heap and at
// places of its choice. They get what they get natively, and the heap goes on.
#include "../../preload/report.h"

#include <stdint.h>
#include <sys/mman.h>

#define GIB (1ul << 30)
#define TIB (1ul << 40)
#define RESERVE (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

static void use(char* at, size_t bytes, const char* what) {
  for (size_t i = 0; i < bytes; i += 4096) *(uint64_t*)(at + i) = i * 3 + 1;
  size_t right = 0;
  for (size_t i = 0; i < bytes; i += 4096) right += *(uint64_t*)(at + i) == i * 3 + 1;
  printf("%s: %zu of %zu right\n", what, right, bytes / 4096);
  fflush(stdout);
}

// Pieces all over it, committed in both ways.
static void reserved(size_t bytes) {
  char* all = mmap(NULL, bytes, PROT_NONE, RESERVE, -1, 0);
  printf("%zu GiB: %s\n", bytes / GIB, all == MAP_FAILED ? strerror(errno) : "there");
  if (all == MAP_FAILED) return;
  for (size_t i = 0; i < 8; ++i) {
    char* piece = all + bytes / 8 * i;
    if (i % 2 == 0)
      CHECK(mprotect(piece, 4 << 20, PROT_READ | PROT_WRITE) == 0);
    else
      CHECK(mmap(piece, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == piece);
    use(piece, 4 << 20, "piece");
    CHECK(madvise(piece, 2 << 20, MADV_DONTNEED) == 0 && piece[0] == 0 && piece[2 << 20] != 0);
  }
  char* block = malloc(16 << 20);
  CHECK(block != NULL);
  use(block, 16 << 20, "the heap beside it");
  free(block);
  printf("munmap: %d\n", munmap(all, bytes));
}

// As many as there are natively, at once.
static void many(size_t bytes, size_t count) {
  char* all[64];
  size_t made = 0;
  for (; made < count; ++made)
    if ((all[made] = mmap(NULL, bytes, PROT_NONE, RESERVE, -1, 0)) == MAP_FAILED) break;
  printf("%zu of %zu GiB each\n", made, bytes / GIB);
  char* block = malloc(32 << 20);
  CHECK(block != NULL);
  use(block, 32 << 20, "the heap beside them");
  free(block);
  while (made-- > 0) CHECK(munmap(all[made], bytes) == 0);
}

// At a place, or not at all.
static void at_a_place(size_t bytes) {
  for (uintptr_t place = 4 * TIB; place < 64 * TIB; place += TIB / 4) {
    char* at = mmap((void*)place, bytes, PROT_NONE, RESERVE, -1, 0);
    CHECK(at != MAP_FAILED);
    if (at == (char*)place) {
      CHECK(mprotect(at, 4 << 20, PROT_READ | PROT_WRITE) == 0);
      use(at, 4 << 20, "at a place");
      printf("munmap: %d\n", munmap(at, bytes));
      return;
    }
    CHECK(munmap(at, bytes) == 0);
  }
  puts("no place");
}

static size_t resident(void) {
  size_t kilobytes = 0;
  FILE* file = fopen("/proc/self/status", "r");
  CHECK(file != NULL);
  for (char line[256]; fgets(line, sizeof line, file) != NULL;) sscanf(line, "RssAnon: %zu", &kilobytes);
  fclose(file);
  return kilobytes << 10;
}

// As Java without ZGC looks for its heap's place: some twenty places, and then any. That one is far.
static void some_places_and_then_any(size_t bytes) {
  for (uintptr_t place = TIB; place < 21 * TIB; place += TIB) {
    char* at = mmap((void*)place, bytes, PROT_NONE, RESERVE, -1, 0);
    CHECK(at != MAP_FAILED && munmap(at, bytes) == 0);
  }
  char* at = mmap(NULL, bytes, PROT_NONE, RESERVE, -1, 0);
  CHECK(at != MAP_FAILED && mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0);
  use(at, bytes, "at any place");
  printf("it is far: %d\n", getenv("EXPECT_PRELOADED") == NULL || resident() < bytes / 2);
  CHECK(munmap(at, bytes) == 0);
  for (uintptr_t place = TIB; place < 21 * TIB; place += TIB) {
    at = mmap((void*)place, bytes, PROT_NONE, RESERVE, -1, 0);
    CHECK(at != MAP_FAILED);
    if (place < 20 * TIB) CHECK(munmap(at, bytes) == 0);
  }
  CHECK(mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0);
  use(at, bytes, "at one of the places");
  printf("it is far: %d\n", getenv("EXPECT_PRELOADED") == NULL || resident() < bytes / 2);
  CHECK(munmap(at, bytes) == 0);
}

int main(void) {
  check_preloaded();
  some_places_and_then_any(GIB / 4);
  reserved(64 * TIB);
  reserved(8 * TIB);
  reserved(4 * TIB);
  reserved(GIB);
  many(TIB, 32);
  many(2 * TIB, 16);
  at_a_place(4 * GIB);
  at_a_place(16 * TIB);
  puts("done");
  return 0;
}
