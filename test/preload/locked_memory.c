// mlock: locked pages are in memory at once and stay there, however short it is; what a program may do with them.
#include "report.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { kPage = 4096, kLocked = 300, kOther = 6000 };

static int resident(const char* memory, int pages) {
  int pagemap = open("/proc/self/pagemap", O_RDONLY), found = 0;
  for (int page = 0; page < pages; ++page) {
    uint64_t entry = 0;
    off_t offset = (off_t)(((uintptr_t)memory / kPage + (uintptr_t)page) * 8);
    CHECK(pread(pagemap, &entry, 8, offset) == 8);
    found += (int)(entry >> 63);
  }
  close(pagemap);
  return found;
}

static void use_memory(void) {
  char* other = mmap(NULL, (size_t)kOther * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(other != MAP_FAILED);
  for (int round = 0; round < 3; ++round)
    for (int page = 0; page < kOther; ++page) other[(size_t)page * kPage] = (char)(page + round);
  for (int page = 0; page < kOther; ++page) CHECK(other[(size_t)page * kPage] == (char)(page + 2));
  CHECK(munmap(other, (size_t)kOther * kPage) == 0);
}

// mlock over pages that do not come in, or over none, beside memory that is far: which mappings are then locked.
// MS_INVALIDATE of what is locked ends with EBUSY.
static void lock_beside(const char* name, int protection, int kind, bool hole) {
  // What is shared is never far: this lies outside of what far memory has, and the rest is put over it.
  char* memory = mmap(NULL, 9 * kPage, protection, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  for (int first = 0; first < 9; first += 6)
    CHECK(mmap(memory + first * kPage, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
               0) != MAP_FAILED);
  if (kind == MAP_PRIVATE)
    CHECK(mmap(memory + 3 * kPage, 3 * kPage, protection, kind | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
  for (int page = 0; page < 9; ++page)
    if (page < 3 || page >= 6) memory[page * kPage] = (char)page;
  if (hole) CHECK(munmap(memory + 3 * kPage, kPage) == 0);
  errno = 0;
  int locked = mlock(memory, 9 * kPage);
  printf("mlock beside %s: %d errno %d;", name, locked, errno);
  for (int part = 0; part < 9; ++part) {
    errno = 0;
    int synced = msync(memory + part * kPage, kPage, MS_INVALIDATE);
    printf(" %d %d", synced, errno);
  }
  printf("; right %d\n", memory[2 * kPage] == 2 && memory[8 * kPage] == 8);
  munlock(memory, 9 * kPage);
  CHECK(munmap(memory, 9 * kPage) == 0);
}

int main(void) {
  check_preloaded();
  const size_t length = (size_t)kLocked * kPage;
  char* memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int page = 0; page < kLocked; page += 2) memory[page * kPage] = 'a';
  use_memory();
  int locked_now = mlock(memory, length);
  printf("mlock %d, resident %d\n", locked_now, resident(memory, kLocked));
  use_memory();
  printf("still %d, right %d\n", resident(memory, kLocked), memory[298 * kPage] == 'a' && memory[299 * kPage] == 0);
  int dropped = madvise(memory, length, MADV_DONTNEED);
  printf("DONTNEED %d errno %d\n", dropped, errno);
  char* larger = mremap(memory, length, 2 * length, MREMAP_MAYMOVE);
  CHECK(larger != MAP_FAILED);
  use_memory();
  printf("moved and grown: resident %d, right %d\n", resident(larger, 2 * kLocked), larger[298 * kPage] == 'a');
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {  // locks are not inherited
    use_memory();
    _exit(larger[298 * kPage] == 'a' && madvise(larger, length, MADV_DONTNEED) == 0 ? 0 : 1);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  printf("child %d\n", status);
  int unlocked = munlock(larger, 2 * length);
  printf("munlock %d, DONTNEED %d\n", unlocked, madvise(larger, length, MADV_DONTNEED));
  void* small = malloc(100000);
  memset(small, 3, 100000);
  printf("mlockall %d\n", mlockall(MCL_CURRENT | MCL_FUTURE));
  char* later = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(later, 5, length);
  free(small);
  for (int i = 0; i < 2000; ++i) {
    size_t size = 5000 + (size_t)i * 37;
    unsigned char* block = malloc(size);
    memset(block, 0xa5, size);
    free(block);
    block = calloc(1, size);
    for (size_t at = 0; at < size; ++at) CHECK(block[at] == 0);
    free(block);
  }
  // Freed by the heap while it is locked, and given out again for zeros.
  for (int round = 0; round < 30; ++round) {
    enum { kBlocks = 16, kBlockBytes = 300000 };
    unsigned char* blocks[kBlocks];
    for (int i = 0; i < kBlocks; ++i) memset(blocks[i] = malloc(kBlockBytes), 0x5a, kBlockBytes);
    for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
    usleep(5000);
    for (int i = 0; i < kBlocks; ++i) {
      blocks[i] = calloc(1, kBlockBytes);
      for (size_t at = 0; at < kBlockBytes; ++at) CHECK(blocks[i][at] == 0);
    }
    for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  }
  printf("later %d\n", resident(later, kLocked));
  printf("munlockall %d\n", munlockall());
  use_memory();
  printf("right %d\n", later[5 * kPage] == 5);
  char* locked = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0);
  use_memory();
  printf("MAP_LOCKED %d\n", resident(locked, kLocked));
  lock_beside("what may not be read", PROT_NONE, MAP_PRIVATE, false);
  lock_beside("what others share", PROT_READ, MAP_SHARED, false);
  lock_beside("what others share and may not be read", PROT_NONE, MAP_SHARED, false);
  lock_beside("a hole", PROT_READ, MAP_PRIVATE, true);
  lock_beside("a hole in what others share", PROT_READ, MAP_SHARED, true);
  return 0;
}
