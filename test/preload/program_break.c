// brk and sbrk, up and down by random steps, by the functions and by syscall(): contents, results and errors are the
// kernel's; more is written than is local. A forked child has its parent's, and moves its own.
#include "report.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

enum { kPage = 4096, kSteps = 1000, kMost = 24 << 20 };

static char* g_start;
static unsigned char g_model[kMost + kPage];  // what each byte is
static size_t g_size;                         // from g_start to the break

static unsigned g_seed = 20261128;
static size_t below(size_t limit) { return (size_t)rand_r(&g_seed) % limit; }

static void write_somewhere(void) {
  for (int i = 0; i < 40 && g_size > 0; ++i) {
    size_t at = below(g_size);
    g_model[at] = (unsigned char)(below(255) + 1);
    g_start[at] = (char)g_model[at];
  }
}

static size_t wrong_bytes(void) {
  size_t wrong = 0;
  for (size_t at = 0; at < g_size; ++at) wrong += (unsigned char)g_start[at] != g_model[at];
  return wrong;
}

static size_t end_of_last_page(size_t size) {
  size_t end = (uintptr_t)g_start + size;
  return (end + kPage - 1) / kPage * kPage - (uintptr_t)g_start;
}

// What comes anew is zero but for the rest of the page that the break was in: that stays as it was.
static void note_size(size_t size) {
  size_t kept = end_of_last_page(size), before = end_of_last_page(g_size);
  if (kept < before) memset(g_model + kept, 0, before - kept);
  g_size = size;
}

static bool g_by_syscall;  // libc does not hear of that, and its functions are not called afterwards

static char* where_it_is(void) { return g_by_syscall ? (char*)syscall(SYS_brk, 0) : sbrk(0); }

static int move_to(size_t size) {
  char* to = g_start + size;
  if (g_by_syscall) return syscall(SYS_brk, to) == (long)to ? 0 : -1;
  if (below(2) == 0) return brk(to);
  return sbrk((intptr_t)size - (intptr_t)g_size) == (void*)-1 ? -1 : 0;
}

static void step(int number) {
  size_t size = below(3) == 0 ? below(kMost) : g_size + below(65536);
  if (size > kMost) size = g_size / 2;
  if (move_to(size) != 0) {
    printf("step %d: %zu refused\n", number, size);
    return;
  }
  note_size(size);
  if (where_it_is() != g_start + size) printf("step %d: it is elsewhere\n", number);
  write_somewhere();
}

static void look(const char* when) { printf("%s: %zu bytes, %zu wrong\n", when, g_size, wrong_bytes()); }

static void try_errors(void) {
  void* before = sbrk(0);
  printf("too far: %d", sbrk(INTPTR_MAX) == (void*)-1);
  printf(" %d", errno == ENOMEM);
  printf(", below the start of all: %d\n", brk((void*)(uintptr_t)kPage) == -1 && errno == ENOMEM);
  struct rlimit given, none;
  CHECK(getrlimit(RLIMIT_DATA, &given) == 0);
  none = given;
  none.rlim_cur = 1;
  CHECK(setrlimit(RLIMIT_DATA, &none) == 0);
  printf("no data: %d\n", sbrk(kMost) == (void*)-1);
  CHECK(setrlimit(RLIMIT_DATA, &given) == 0);
  printf("as before: %d\n", sbrk(0) == before);
}

// What was given back is another mapping's: the break cannot come back, and that mapping stays as it is.
static void come_back_to_a_mapping(void) {
  const size_t size = g_size;
  CHECK(move_to(size - 256 * kPage) == 0);
  note_size(size - 256 * kPage);
  char* there = (char*)(((uintptr_t)g_start + size - 128 * kPage) / kPage * kPage);
  CHECK(mmap(there, 16 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
        there);
  memset(there, 9, 16 * kPage);
  printf("over a mapping: %d", move_to(size));
  printf(" %d", errno == ENOMEM);
  size_t wrong = 0;
  for (size_t i = 0; i < 16 * kPage; ++i) wrong += there[i] != 9;
  printf(", %zu of it wrong\n", wrong);
  CHECK(munmap(there, 16 * kPage) == 0);
  look("below it");
  CHECK(move_to(size) == 0);
  note_size(size);
  look("once it is gone");
}

static void fork_and_move(void) {
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    look("child");
    for (int i = 0; i < 100; ++i) step(i);
    look("child after steps");
    fflush(stdout);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  look("parent");
}

int main(void) {
  check_preloaded();
  setvbuf(stdout, NULL, _IOFBF, 1 << 16);
  printf("before any output\n");  // libc's malloc may move the break for a buffer
  g_start = sbrk(0);
  for (int i = 0; i < kSteps; ++i) {
    step(i);
    if (i % 100 == 0) look("then");
  }
  look("at the end");
  CHECK(move_to(kMost) == 0);
  note_size(kMost);
  memset(g_start, 7, kMost);
  memset(g_model, 7, kMost);
  CHECK(mprotect((void*)(((uintptr_t)g_start + kPage) / kPage * kPage), 16 * kPage, PROT_READ) == 0);
  CHECK(mprotect((void*)(((uintptr_t)g_start + kPage) / kPage * kPage), 16 * kPage, PROT_READ | PROT_WRITE) == 0);
  look("all of it");
  come_back_to_a_mapping();
  fork_and_move();
  try_errors();
  g_by_syscall = true;
  for (int i = 0; i < 100; ++i) step(i);
  look("by syscall()");
  return 0;
}
