// Reads and writes: through the kernel, where an address that cannot be touched is a result, and by the program
// itself, where it is a signal.
#include "lane.h"

#include <setjmp.h>
#include <signal.h>

static int g_patterns, g_copy;
static unsigned char* g_copied;
static sigjmp_buf g_jump;
static volatile sig_atomic_t g_touching = 0;

static void on_signal(int number, siginfo_t* information, void* context) {
  (void)context;
  if (g_touching) siglongjmp(g_jump, number);
  char text[200];
  int length = snprintf(text, sizeof text, "signal %d at %p, code %d, process %d\n", number, information->si_addr,
                        information->si_code, getpid());
  if (write(2, text, (size_t)length) != length) _exit(5);
  _exit(4);
}

void open_copy(void) {
  g_copy = memfd_create("copy", MFD_CLOEXEC);
  CHECK(g_copy >= 0 && ftruncate(g_copy, kStride * kPage) == 0);
  g_copied = mmap(NULL, kStride * kPage, PROT_READ, MAP_SHARED, g_copy, 0);
  CHECK(g_copied != MAP_FAILED);
}

void open_bytes(void) {
  open_copy();
  g_patterns = memfd_create("patterns", MFD_CLOEXEC);
  CHECK(g_patterns >= 0);
  for (uint64_t i = 0; i < (uint64_t)kPatternPages * kPage / 8; ++i) {
    uint64_t word = (i + 1) * 0x9e3779b97f4a7c15u;
    CHECK(write(g_patterns, &word, sizeof word) == sizeof word);
  }
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER};
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
}

static uint64_t digest_of_copied(size_t bytes) {
  const uint64_t* words = (const uint64_t*)g_copied;
  uint64_t digest = bytes;
  for (size_t i = 0; i < bytes / 8; ++i) digest = (digest ^ words[i]) * 0x9e3779b97f4a7c15u + (digest >> 31);
  return digest;
}

uint64_t digest_of(const char* at, unsigned pages) {
  uint64_t digest = 0;
  for (unsigned page = 0; page < pages;) {
    ssize_t got = pwrite(g_copy, at + (size_t)page * kPage, (size_t)(pages - page) * kPage, 0);
    digest = digest * 31 + page + (got > 0 ? digest_of_copied((size_t)got) : 7);
    page += got > 0 ? (unsigned)(got / kPage) : 0;
    if (got <= 0 || page < pages) ++page;  // one that cannot be read
  }
  return digest;
}

uint64_t digest_of_lane(const struct Lane* lane) {
  uint64_t digest = digest_of(lane->inside, kInside) * 3 + digest_of(lane->outside, kOutside);
  return lane->away != NULL ? digest * 5 + digest_of(lane->away, lane->away_pages) : digest;
}

void call_show(struct Lane* lane) {
  struct Range range = draw_range(lane, 12);
  record(lane, "show", place(lane, range.at), range.pages, 0, (long)(digest_of(range.at, range.pages) >> 1), 0);
}

// Whole pages in one call, or a few bytes in one page.
void call_write(struct Lane* lane) {
  struct Range range = draw_range(lane, 6);
  unsigned pattern = draw(lane, kPatternPages - 6), offset = draw(lane, kPage - 64);
  ssize_t got;
  if (chance(lane, 70))
    got = pread(g_patterns, range.at, (size_t)range.pages * kPage, (off_t)pattern * kPage);
  else
    got = pread(g_patterns, range.at + offset, 1 + draw(lane, 60), (off_t)pattern * kPage + 8);
  RECORD(lane, "write", place(lane, range.at), range.pages, offset, got);
}

// 0 or the signal. A function of its own: nothing of its caller's is in registers that a jump would bring back old.
static __attribute__((noinline)) int touch(volatile uint64_t* word, bool store, volatile uint64_t* value) {
  int number = sigsetjmp(g_jump, 0);
  if (number == 0) {
    g_touching = 1;
    if (store)
      *word = *value;
    else
      *value = *word;
  }
  g_touching = 0;
  return number;
}

void call_touch(struct Lane* lane) {
  struct Range range = draw_range(lane, 3);
  bool store = chance(lane, 60);
  for (unsigned i = 0; i < range.pages; ++i) {
    volatile uint64_t* word = (volatile uint64_t*)(range.at + (size_t)i * kPage) + draw(lane, kPage / 8);
    volatile uint64_t value = draw(lane, 1000);
    int number = touch(word, store, &value);
    record(lane, store ? "store" : "load", place(lane, range.at), i, number, (long)(value >> 1), 0);
  }
}
