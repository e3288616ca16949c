// Memory that may not be written leaves and comes back like any other, in pieces of all sizes: it holds what was in
// it, and who writes to it gets his signal, whatever is done to it at that moment. Read-only, executable, and such
// that nobody may touch for a while; alone, beside a thread that changes what is allowed, in forked children, and at
// the limit of mappings.
#include "report.h"

#include <linux/io_uring.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { kPage = 4096, kPages = 6144, kWords = kPage / 8, kRounds = 6 };

static uint64_t* memory;
static int allowed[kPages];            // PROT_* of each page
static unsigned char version[kPages];  // what it was last written with
static atomic_int stopped, chances, seen_as_writable;

static uint64_t random_state = 88172645463325252u;
static uint64_t any(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}

static uint64_t content(size_t page, size_t word) {
  return (page * kWords + word) * 0x9E3779B97F4A7C15u + version[page];
}
static void fill(size_t page) {
  ++version[page];
  for (size_t word = 0; word < kWords; ++word) memory[page * kWords + word] = content(page, word);
}
static void check(size_t page) {
  if ((allowed[page] & PROT_READ) == 0) return;
  for (size_t word = 0; word < kWords; word += 61) CHECK(memory[page * kWords + word] == content(page, word));
}

static void allow(size_t first, size_t count, int protection) {
  CHECK(mprotect(memory + first * kWords, count * kPage, protection) == 0);
  for (size_t page = first; page < first + count; ++page) allowed[page] = protection;
}

static _Thread_local sigjmp_buf refused;
static void on_signal(int number) {
  (void)number;
  siglongjmp(refused, 1);
}
static int may_write(volatile uint64_t* word) {
  if (sigsetjmp(refused, 1) != 0) return 0;
  *word = 0;
  return 1;
}

// Writes, again and again, where nobody may, to pages that the others leave alone; and maps what it can get.
enum { kTried = 64 };
static uint64_t* tried;
static void* try_to_write(void* unused) {
  (void)unused;
  for (size_t page = 0; !stopped; page = (page + 1) % kTried) {
    if (may_write(tried + page * kWords + 3)) seen_as_writable = 1;
    if (++chances % 4 != 0) continue;
    void* another = mmap(NULL, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // Where it has become one with a neighbour it takes a mapping more, which there may not be.
    if (another != MAP_FAILED) munmap(another, kPage);
  }
  return NULL;
}

// The kernel writes to them whenever it likes, so that they can't leave: what tries to take them gives up. Where
// there is no io_uring they are like the others.
static void pin(void* pages, size_t bytes) {
  struct io_uring_params about = {0};
  int ring = (int)syscall(SYS_io_uring_setup, 1, &about);
  struct iovec buffer = {pages, bytes};
  if (ring < 0 || syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1) != 0)
    printf("no page is pinned\n");
}

static void change_some(void) {
  static const int kinds[] = {PROT_READ,
                              PROT_READ,
                              PROT_READ | PROT_EXEC,
                              PROT_READ | PROT_WRITE | PROT_EXEC,
                              PROT_NONE,
                              PROT_READ | PROT_WRITE};
  for (size_t page = 0; page < kPages;) {
    size_t count = 1 + any() % (any() % 3 == 0 ? 300 : 5);
    if (count > kPages - page) count = kPages - page;
    if (any() % 3 == 0) {
      allow(page, count, PROT_READ | PROT_WRITE);
      for (size_t i = page; i < page + count; ++i) fill(i);
    }
    allow(page, count, kinds[any() % (sizeof kinds / sizeof *kinds)]);
    page += count;
  }
}

static void check_all(void) {
  for (size_t page = 0; page < kPages; ++page) check(page);
  for (int i = 0; i < 2000; ++i) check(any() % kPages);
}

static void in_a_child(void) {
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    check_all();
    CHECK(!may_write(tried + 7));
    for (size_t page = 0; page < kPages; page += 50) {
      allow(page, 1, PROT_READ | PROT_WRITE);
      fill(page);
      allow(page, 1, PROT_READ);
    }
    check_all();
    _exit(0);
  }
  check_all();
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

// Each second page is a mapping of its own: as many as there may be, or nearly. mprotect() is refused at the end.
static void at_the_limit(void) {
  enum { kMany = 70000 };
  unsigned char* many = mmap(NULL, (size_t)kMany * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(many != MAP_FAILED);
  for (size_t page = 0; page < kMany; ++page) many[page * kPage] = (unsigned char)(page * 7 + 1);
  for (size_t page = 0; page < kMany; page += 2)
    if (mprotect(many + page * kPage, kPage, PROT_READ) != 0) break;
  for (size_t page = 0; page < kMany; ++page) CHECK(many[page * kPage] == (unsigned char)(page * 7 + 1));
  CHECK(mprotect(many + kPage, (size_t)(kMany - 1) * kPage, PROT_READ | PROT_WRITE) == 0);  // which takes none
  CHECK(munmap(many, (size_t)kMany * kPage) == 0);
}

int main(void) {
  check_preloaded();
  signal(SIGSEGV, on_signal);
  memory = mmap(NULL, (size_t)kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  tried = mmap(NULL, kTried * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED && tried != MAP_FAILED);
  for (size_t page = 0; page < kPages; ++page) allowed[page] = PROT_READ | PROT_WRITE, fill(page);
  for (size_t word = 0; word < kTried * kWords; ++word) tried[word] = word + 1;
  pin(tried, kTried / 2 * kPage);
  CHECK(mprotect(tried, kTried * kPage, PROT_READ) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, try_to_write, NULL) == 0);
  for (int round = 0; round < kRounds; ++round) {
    change_some();
    check_all();
    if (round % 2 == 1) in_a_child();
  }
  at_the_limit();
  stopped = 1;
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(chances > 0 && !seen_as_writable);
  for (size_t word = 0; word < kTried * kWords; ++word) CHECK(tried[word] == word + 1);
  for (size_t page = 0; page < kPages; ++page) {
    if (allowed[page] != PROT_NONE) continue;
    allow(page, 1, PROT_READ);
    check(page);
  }
  printf("as it was written\n");
  return 0;
}
