// Random sequences of memory calls in one stretch of addresses. Every result, every errno and the bytes at the end
// must be the same natively and preloaded. Seed: HINTERLAND_TEST_SEED; calls: HINTERLAND_TEST_CALLS.
//
// Nothing may be mapped behind the test's back while the stretch has holes, so the loop neither allocates nor lets
// the kernel choose addresses.
#include "report.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

enum { kPages = 64, kPage = 4096, kOut = 1 << 16 };

static char* g_base;
static uint64_t g_state;
static int g_file, g_pipe[2];
static char g_out[kOut];
static size_t g_used;

static unsigned draw(unsigned below) {
  g_state = g_state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(g_state >> 33) % below;
}

static void flush_out(void) {
  CHECK(write(1, g_out, g_used) == (ssize_t)g_used);
  g_used = 0;
}
static void say(const char* what, unsigned a, unsigned b, unsigned c, long result, int error) {
  if (g_used > kOut - 200) flush_out();
  g_used += (size_t)snprintf(g_out + g_used, 200, "%s %u %u %u: %ld %d\n", what, a, b, c, result, error);
}

// An address as a page number in the stretch; results elsewhere are all the same.
static long place(void* address) {
  if (address == MAP_FAILED) return -1;
  char* at = address;
  return at >= g_base && at < g_base + (long)kPages * kPage ? (at - g_base) / kPage : 1000;
}

static int draw_protection(void) {
  static const int kinds[] = {PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE};
  return kinds[draw(4)];
}

static void call_map(char* at, unsigned page, unsigned pages) {
  static const int flags[] = {MAP_FIXED, MAP_FIXED, MAP_FIXED | MAP_NORESERVE, MAP_FIXED_NOREPLACE,
                              MAP_FIXED | MAP_STACK};
  unsigned kind = draw(8);
  int protection = draw_protection();
  errno = 0;
  void* result;
  if (kind < 5)
    result = mmap(at, (size_t)pages * kPage, protection, flags[kind] | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  else if (kind == 5)
    result = mmap(at, (size_t)pages * kPage, protection, MAP_PRIVATE | MAP_FIXED, g_file, draw(4) * kPage);
  else if (kind == 6)
    result = mmap(at, (size_t)pages * kPage, protection, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  else
    result = mmap(at, (size_t)pages * kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, g_file, 0);  // read-only
  say("mmap", kind, page, pages, place(result), result == MAP_FAILED ? errno : 0);
}

static void call_advise(char* at, unsigned page, unsigned pages) {
  static const int advices[] = {MADV_DONTNEED, MADV_DONTNEED, MADV_NORMAL, MADV_WILLNEED, MADV_DONTDUMP, 9999};
  int advice = advices[draw(6)];
  errno = 0;
  int result = madvise(at, (size_t)pages * kPage, advice);
  say("madvise", (unsigned)advice, page, pages, result, errno);
}

static void call_remap(char* at, unsigned page, unsigned pages) {
  unsigned more = 1 + draw(12), target = draw(kPages), kind = draw(3);
  if (page + more > kPages) more = kPages - page;
  if (target + more > kPages) target = kPages - more;
  void* result;
  errno = 0;
  if (kind == 0)
    result = mremap(at, (size_t)pages * kPage, (size_t)(pages < more ? pages : more) * kPage, 0);
  else if (kind == 1)
    result = mremap(at, kPage, (size_t)more * kPage, 0);
  else
    result = mremap(at, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, g_base + (size_t)target * kPage);
  say("mremap", kind, page, kind == 2 ? target : more, place(result), result == MAP_FAILED ? errno : 0);
}

static void call_core(char* at, unsigned page, unsigned pages) {
  unsigned char present[kPages];
  errno = 0;
  int result = mincore(at, (size_t)pages * kPage, present);
  say("mincore", 0, page, pages, result, errno);
}

// Through the kernel, so that an address that cannot be touched is a result and not a death.
static void call_write(char* at, unsigned page, unsigned pages) {
  char text[8];
  unsigned value = draw(100000);
  snprintf(text, sizeof text, "%06u", value);
  for (unsigned i = 0; i < pages; ++i) {
    CHECK(write(g_pipe[1], text, 6) == 6);
    errno = 0;
    ssize_t got = read(g_pipe[0], at + (size_t)i * kPage + value % 4000, 6);
    int error = errno;
    char rest[6];
    if (got < 0) CHECK(read(g_pipe[0], rest, 6) == 6);
    say("write", value, page + i, 0, got, got < 0 ? error : 0);
  }
}

static void call_bad(char* at, unsigned page) {
  errno = 0;
  say("munmap odd", page, 0, 0, munmap(at + 1, kPage), errno);
  errno = 0;
  say("munmap nothing", page, 0, 0, munmap(at, 0), errno);
  errno = 0;
  say("mprotect odd", page, 0, 0, mprotect(at + 1, kPage, PROT_READ), errno);
  errno = 0;
  say("mprotect nothing", page, 0, 0, mprotect(at, 0, PROT_READ), errno);
  errno = 0;
  say("madvise odd", page, 0, 0, madvise(at + 1, kPage, MADV_DONTNEED), errno);
  errno = 0;
  say("mmap nothing", page, 0, 0, place(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), errno);
  errno = 0;
  say("mmap huge", page, 0, 0, place(mmap(NULL, (size_t)-1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), errno);
  errno = 0;
  say("mmap no kind", page, 0, 0, place(mmap(NULL, kPage, PROT_READ, MAP_ANONYMOUS, -1, 0)), errno);
  errno = 0;
  say("mmap odd offset", page, 0, 0, place(mmap(NULL, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 1)), errno);
  errno = 0;
  say("mmap odd fixed", page, 0, 0,
      place(mmap(at + 1, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)), errno);
  errno = 0;
  say("mremap odd", page, 0, 0, place(mremap(at + 1, kPage, kPage, 0)), errno);
  errno = 0;
  say("mremap to nothing", page, 0, 0, place(mremap(at, kPage, 0, MREMAP_MAYMOVE)), errno);
  errno = 0;
  say("mremap flags", page, 0, 0, place(mremap(at, kPage, kPage, 64)), errno);
}

static void one_call(void) {
  unsigned page = draw(kPages), pages = 1 + draw(12);
  if (page + pages > kPages) pages = kPages - page;
  char* at = g_base + (size_t)page * kPage;
  switch (draw(16)) {
    case 0:
    case 1:
    case 2:
      call_map(at, page, pages);
      break;
    case 3:
    case 4:
      errno = 0;
      say("munmap", 0, page, pages, munmap(at, (size_t)pages * kPage), errno);
      break;
    case 5:
    case 6: {
      int protection = draw_protection();
      errno = 0;
      int result = mprotect(at, (size_t)pages * kPage, protection);
      say("mprotect", (unsigned)protection, page, pages, result, errno);
      break;
    }
    case 7:
    case 8:
      call_advise(at, page, pages);
      break;
    case 9:
    case 10:
      call_remap(at, page, pages);
      break;
    case 11:
      call_core(at, page, pages);
      break;
    case 12:
      if (draw(20) == 0) call_bad(at, page);
      break;
    default:
      call_write(at, page, pages);
  }
}

static void show_bytes(void) {
  for (unsigned page = 0; page < kPages; ++page) {
    static unsigned char copy[kPage];
    uint64_t sum = 0;
    ssize_t got = write(g_pipe[1], g_base + (size_t)page * kPage, kPage);
    if (got > 0) {
      CHECK(read(g_pipe[0], copy, (size_t)got) == got);
      for (ssize_t i = 0; i < got; ++i) sum = sum * 31 + copy[i];
    }
    say("bytes", page, 0, 0, got > 0 ? (long)(sum >> 8) : -1, 0);
  }
}

int main(void) {
  check_preloaded();
  const char* seed = getenv("HINTERLAND_TEST_SEED");
  const char* calls = getenv("HINTERLAND_TEST_CALLS");
  g_state = seed != NULL ? strtoull(seed, NULL, 0) : 20240611;
  printf("HINTERLAND_TEST_SEED=%llu\n", (unsigned long long)g_state);
  fflush(stdout);
  char name[] = "/tmp/hinterland-mappings-XXXXXX";
  int writable = mkstemp(name);
  CHECK(writable >= 0);
  for (int i = 0; i < 16 * kPage; i += 4) CHECK(write(writable, &i, 4) == 4);
  g_file = open(name, O_RDONLY);
  unlink(name);
  CHECK(g_file >= 0 && pipe(g_pipe) == 0);
  g_base = mmap(NULL, (size_t)kPages * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(g_base != MAP_FAILED);
  long count = calls != NULL ? atol(calls) : 20000;
  for (long i = 1; i <= count; ++i) {
    one_call();
    if (i % 500 == 0) show_bytes();
  }
  show_bytes();
  flush_out();
  return 0;
}
