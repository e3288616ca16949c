// A 64-bit program that makes system calls by `int 0x80`, with the numbers and registers of 32-bit programs. They can
// name memory below 4 GiB.
#include "../../preload/report.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096ul
#define PAGES 3072ul
enum { kGetpid = 20, kWrite = 4, kMunmap = 91, kMprotect = 125, kMremap = 163, kMadvise = 219, kNone = 9999 };

static long narrow(long number, long a, long b, long c, long d, long e) {
  long result;
  __asm__ volatile("int $0x80"
                   : "=a"(result)
                   : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
                   : "r8", "r9", "r10", "r11", "memory");
  return result;
}

// A kernel without 32-bit calls sends SIGSEGV.
static int kernel_has_them(void) {
  pid_t child = fork();
  if (child == 0) _exit(narrow(kGetpid, 0, 0, 0, 0, 0) == getpid() ? 0 : 1);
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) || status == 0);
  return status == 0;
}

static char* map_low(void) {
  char* at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  CHECK(at != MAP_FAILED && (uintptr_t)at + PAGES * PAGE <= 1ul << 32);
  return at;
}
static void fill(char* at, uint64_t salt) {
  for (size_t i = 0; i < PAGES; ++i) *(uint64_t*)(at + i * PAGE) = (i + 1) * salt;
}
// Pages from `first` on that have what fill() wrote; or zeros, with salt 0.
static size_t right(const char* at, size_t first, size_t pages, uint64_t salt) {
  size_t count = 0;
  for (size_t i = first; i < first + pages; ++i) count += *(const uint64_t*)(at + i * PAGE) == (i + 1) * salt;
  return count;
}

int main(void) {
  check_preloaded();
  if (!kernel_has_them()) {
    puts("the kernel has no calls of 32 bits");
    return 0;
  }
  char* at = map_low();
  fill(at, 7);
  CHECK(narrow(kMadvise, (long)at, PAGES / 2 * PAGE, MADV_DONTNEED, 0, 0) == 0);
  printf("given back: %d, kept: %d\n", right(at, 0, PAGES / 2, 0) == PAGES / 2,
         right(at, PAGES / 2, PAGES / 2, 7) == PAGES / 2);
  strcpy(at, "written from far memory\n");
  CHECK(narrow(kWrite, 1, (long)at, (long)strlen(at), 0, 0) == (long)strlen(at));
  CHECK(narrow(kMprotect, (long)at, PAGES * PAGE, PROT_READ, 0, 0) == 0);
  CHECK(narrow(kMprotect, (long)at, PAGES * PAGE, PROT_READ | PROT_WRITE, 0, 0) == 0);
  fill(at, 9);
  CHECK(narrow(kMremap, (long)at, PAGES * PAGE, PAGES / 2 * PAGE, 0, 0) == (long)at);
  printf("shrunk: %d\n", right(at, 0, PAGES / 2, 9) == PAGES / 2);
  CHECK(narrow(kMunmap, (long)at, PAGES / 2 * PAGE, 0, 0, 0) == 0);
  char* again =
      mmap(at, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  printf("its place is free: %d, zeros: %d\n", again == at, again == at && right(again, 0, PAGES, 0) == PAGES);
  printf("refused: %ld %ld\n", narrow(kMunmap, (long)at + 1, PAGE, 0, 0, 0), narrow(kNone, 0, 0, 0, 0, 0));
  return 0;
}
