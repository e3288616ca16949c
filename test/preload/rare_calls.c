// Calls that few programs make and that have a place in the library: results as natively, and memory that holds.
#include "report.h"

#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define PAGE 4096u

static void exit_handler(void) { puts("an exit handler ran"); }

// Neither exit handlers nor buffers, but the status.
static void ends_at_once(void) {
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    atexit(exit_handler);
    _Exit(41);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  printf("_Exit: %d %d\n", WIFEXITED(status), WEXITSTATUS(status));
}

static void* formats(void* locale) {
  char text[40];
  uselocale(locale);
  snprintf(text, sizeof text, "%.2f", 1234.5);
  return strdup(text);
}

// In a thread and after a fork, where libc reads the locale again.
static void locales(void) {
  locale_t made = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
  CHECK(made != (locale_t)0);
  locale_t copy = duplocale(made);
  CHECK(copy != (locale_t)0);
  freelocale(made);
  pthread_t thread;
  void* text = NULL;
  CHECK(pthread_create(&thread, NULL, formats, copy) == 0 && pthread_join(thread, &text) == 0);
  printf("locale: %s\n", (char*)text);
  free(text);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    text = formats(copy);
    _exit(strcmp(text, "1234.50") == 0 ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  printf("locale after fork: %d\n", status);
  uselocale(LC_GLOBAL_LOCALE);
  freelocale(copy);
}

static void protection_keys(void) {
  char* page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED);
  memset(page, 3, 2 * PAGE);
  printf("pkey_mprotect(-1): %d\n", pkey_mprotect(page, PAGE, PROT_READ, -1));
  errno = 0;
  int result = pkey_mprotect(page, PAGE, PROT_READ, 999);
  printf("pkey_mprotect(999): %d errno %d\n", result, errno);
  CHECK(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
  page[0] = 4;
  int key = pkey_alloc(0, 0);
  if (key > 0) {  // memory that a key made writable grows as such, and may be filled by the kernel
    char* closed = mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(closed != MAP_FAILED);
    printf("opened by a key: %d\n", pkey_mprotect(closed, 64 * PAGE, PROT_READ | PROT_WRITE, key));
    memset(closed, 5, 64 * PAGE);
    printf("filled by the kernel: %d\n", madvise(closed, PAGE, MADV_POPULATE_WRITE));
    char* grown = mremap(closed, 64 * PAGE, 128 * PAGE, MREMAP_MAYMOVE);
    CHECK(grown != MAP_FAILED);
    grown[127 * PAGE] = 6;
    grown[PAGE] = 7;
    printf("grown: %d %d %d\n", grown[0], grown[PAGE], grown[127 * PAGE]);
    CHECK(munmap(grown, 128 * PAGE) == 0 && pkey_free(key) == 0);
  }
  printf("holds %d %d\n", page[0], page[PAGE]);
  CHECK(munmap(page, 2 * PAGE) == 0);
}

// Figures of an allocator that is not in use: only that asking does no harm.
static void figures(void) {
  char* block = malloc(100000);
  memset(block, 5, 100000);
  struct mallinfo2 info = mallinfo2();
  (void)info;
  printf("after the figures: %d\n", block[99999]);
  free(block);
}

// At addresses of the program's own choice, and where nothing is.
static void of_other_mappings(void) {
  char* here = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(here != MAP_FAILED);
  here[0] = 6;
  printf("shared: mlock %d munlock %d msync %d\n", mlock(here, PAGE), munlock(here, PAGE),
         msync(here, PAGE, MS_SYNC));
  printf("shared: mlock2 %d\n", mlock2(here, PAGE, MLOCK_ONFAULT));
  CHECK(munmap(here, PAGE) == 0);
  int errors[3];
  errno = 0, mlock(here, PAGE), errors[0] = errno;
  errno = 0, munlock(here, PAGE), errors[1] = errno;
  errno = 0, msync(here, PAGE, MS_SYNC), errors[2] = errno;
  printf("nothing there: %d %d %d\n", errors[0], errors[1], errors[2]);
  errno = 0;
  void* refused =
      mmap((void*)(uintptr_t)(5u << 20 | 1), PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  printf("an odd address: %d errno %d\n", refused == MAP_FAILED, errno);
}

// Onto itself, where something far lies behind: of what is private and local, and of nothing. Nothing is unmapped.
static void remapped_onto_itself(int kind) {
  char* place = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  CHECK(place != MAP_FAILED && munmap(place, 4 * PAGE) == 0);
  CHECK(mmap(place, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == place);
  CHECK(munmap(place, PAGE) == 0);
  if (kind != 0) CHECK(mmap(place, PAGE, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == place);
  errno = 0;
  void* result = mremap(place, 0, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
  printf("remapped onto itself: %d errno %d", result == MAP_FAILED, errno);
  unsigned char ignored;
  for (unsigned i = 0; i < 4; ++i) printf(" %d", mincore(place + i * PAGE, PAGE, &ignored));
  puts("");
}

static void show_remapped(const char* what, char* from, char* to) {
  errno = 0;
  char* result = mremap(from, 0, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
  printf("%s: %s errno %d;", what, result == MAP_FAILED ? "failed" : result == to ? "there" : "elsewhere", errno);
  unsigned char ignored;
  for (unsigned i = 0; i < 4; ++i) printf(" %d", mincore(to + i * PAGE, PAGE, &ignored));
  printf(" source %d\n", mincore(from, PAGE, &ignored));
}

// mremap from a length of 0 maps what is shared a second time. The target is unmapped first, with what lies in it.
static void second_mappings(void) {
  enum { kPages = 64 };
  char* shared = mmap(NULL, kPages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  char* own = mmap(NULL, kPages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED && own != MAP_FAILED);
  show_remapped("shared beside it", shared, shared + 8 * PAGE);
  show_remapped("shared onto private", shared, own + 8 * PAGE);
  show_remapped("private onto private", own, own + 16 * PAGE);
  show_remapped("private onto shared", own, shared + 16 * PAGE);
  show_remapped("shared onto itself", shared + 24 * PAGE, shared + 24 * PAGE);
  show_remapped("private onto itself", own + 24 * PAGE, own + 24 * PAGE);
  CHECK(mmap(shared + 33 * PAGE, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
        MAP_FAILED);
  show_remapped("shared onto itself and private", shared + 32 * PAGE, shared + 32 * PAGE);
}

// What stays local grows and moves onto far memory that lies close behind it, with room to grow between the two.
static void grown_beside_the_target(void) {
  enum { kPages = 16 };
  char* place = mmap(NULL, kPages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  CHECK(place != MAP_FAILED && munmap(place, kPages * PAGE) == 0);
  const int here = MAP_ANONYMOUS | MAP_FIXED, both = PROT_READ | PROT_WRITE;
  CHECK(mmap(place, 3 * PAGE, both, MAP_SHARED | here, -1, 0) == place);
  CHECK(mmap(place + 8 * PAGE, PAGE, both, MAP_PRIVATE | here, -1, 0) == place + 8 * PAGE);
  for (unsigned i = 0; i < 3; ++i) place[i * PAGE] = (char)('a' + i);
  place[8 * PAGE] = 'z';
  errno = 0;
  char* to = mremap(place, 3 * PAGE, 5 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place + 4 * PAGE);
  printf("grown beside the target: %d errno %d", to == place + 4 * PAGE, errno);
  if (to != MAP_FAILED) printf(" %.1s%.1s%.1s", to, to + PAGE, to + 2 * PAGE);
  unsigned char ignored;
  for (unsigned i = 0; i < kPages; ++i) printf(" %d", mincore(place + i * PAGE, PAGE, &ignored));
  puts("");
}

// One structure for the new limit and for the old one.
static void limits(void) {
  struct rlimit given, one;
  CHECK(getrlimit(RLIMIT_DATA, &given) == 0);
  one = given;
  one.rlim_cur = (rlim_t)1 << 40;
  printf("prlimit: %d", prlimit(0, RLIMIT_DATA, &one, &one));
  printf(" %d", one.rlim_cur == given.rlim_cur);
  CHECK(getrlimit(RLIMIT_DATA, &one) == 0);
  printf(" %d\n", one.rlim_cur == (rlim_t)1 << 40);
  CHECK(setrlimit(RLIMIT_DATA, &given) == 0);
}

int main(void) {
  check_preloaded();
  second_mappings();
  grown_beside_the_target();
  remapped_onto_itself(0);
  remapped_onto_itself(MAP_PRIVATE | MAP_STACK);
  remapped_onto_itself(MAP_SHARED);
  ends_at_once();
  locales();
  protection_keys();
  figures();
  limits();
  of_other_mappings();
  puts("done");
  return 0;
}
