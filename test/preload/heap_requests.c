// What a program asks for the pages of a heap block (protection, advice, a mapping of its own in their place) ends
// when the block is freed: the next block there is as any other, in the process and in its children.
#include "report.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { kBytes = 40 << 20 };  // natively always a mapping of its own

static size_t count_others(const unsigned char* bytes, unsigned char value) {
  size_t others = 0;
  for (size_t i = 0; i < kBytes; ++i) others += bytes[i] != value;
  return others;
}

static unsigned char* block_of(unsigned char value) {
  unsigned char* block = aligned_alloc(4096, kBytes);
  CHECK(block != NULL);
  memset(block, value, kBytes);
  return block;
}

static int end_of(pid_t child) {
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  return status;
}

// A new block, which a child has as it is; what the child writes is its own.
static void use_anew(const char* request) {
  unsigned char* block = malloc(kBytes);
  CHECK(block != NULL);
  memset(block, 9, kBytes);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    size_t others = count_others(block, 9);
    memset(block, 3, kBytes);
    _exit(others != 0);
  }
  printf("%s: child %d", request, end_of(child));
  printf(", %zu bytes not the parent's\n", count_others(block, 9));
  free(block);
  unsigned char* zeros = calloc(1, kBytes);
  CHECK(zeros != NULL);
  printf("%s: %zu bytes not zero\n", request, count_others(zeros, 0));
  free(zeros);
}

static void map_over(unsigned char* block, int protection, int flags) {
  CHECK(mmap(block, kBytes, protection, flags | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == block);
}

static long locked_kib(void) {
  char line[256];
  long found = -1;
  FILE* status = fopen("/proc/self/status", "r");
  CHECK(status != NULL);
  while (fgets(line, sizeof line, status) != NULL) sscanf(line, "VmLck: %ld", &found);
  fclose(status);
  return found;
}

static void free_locked(void) {
  const long before = locked_kib();
  unsigned char* block = block_of(6);
  CHECK(mlock(block + 4096 * 16, 4096 * 8) == 0);
  printf("locked: %ld KiB more\n", locked_kib() - before);
  free(block);
  use_anew("locked");
  printf("and once it is freed: %ld KiB more\n", locked_kib() - before);
}

static void free_in_child(void) {
  unsigned char* block = block_of(5);
  CHECK(madvise(block, kBytes, MADV_DONTFORK) == 0);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    free(block);
    unsigned char* next = malloc(kBytes);
    memset(next, 6, kBytes);
    unsigned char* mapped = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(mapped, 7, kBytes);
    _exit(count_others(next, 6) != 0 || count_others(mapped, 7) != 0);
  }
  printf("freed in a child that does not have it: %d\n", end_of(child));
  printf("and here: %zu wrong\n", count_others(block, 5));
  free(block);
}

int main(void) {
  check_preloaded();
  unsigned char* block = block_of(1);
  CHECK(mprotect(block + 4096 * 100, 4096 * 200, PROT_READ) == 0);
  free(block);
  use_anew("protected");
  block = block_of(2);
  CHECK(madvise(block + (8 << 20), 8 << 20, MADV_WIPEONFORK) == 0);
  free(block);
  use_anew("wiped on fork");
  block = block_of(3);
  CHECK(madvise(block, kBytes, MADV_DONTFORK) == 0);
  free(block);
  use_anew("kept from children");
  block = block_of(4);
  map_over(block, PROT_READ | PROT_WRITE, MAP_SHARED);
  memset(block, 6, kBytes);
  free(block);
  use_anew("shared memory in its place");
  block = block_of(5);
  map_over(block, PROT_NONE, MAP_PRIVATE);
  free(block);
  use_anew("nothing in its place");
  free_locked();
  free_in_child();
  use_anew("afterwards");
  return 0;
}
