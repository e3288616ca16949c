// Loops over the bytes of a block, which work on a copy of it where the program has guards: forwards and backwards,
// by index and by pointer, ended early, on blocks beside each other, with code that has no guards in between; signals
// that leave a loop for good. Some 40 MiB; prints digests.
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define NOINLINE __attribute__((noinline)) static
typedef uint64_t u64;
enum { kBlocks = 20000 };

static u64 g_state = 88172645463325252u;
static u64 next_number(void) {
  g_state ^= g_state << 13;
  g_state ^= g_state >> 7;
  return g_state ^= g_state << 17;
}

NOINLINE u64 sum(const unsigned* p, long n) {
  u64 s = 0;
  for (long i = 0; i < n; ++i) s += p[i];
  return s;
}
NOINLINE u64 backwards(const unsigned* p, long n) {
  u64 s = 0;
  for (const unsigned* at = p + n; at > p;) s = s * 31 + *--at;
  return s;
}
NOINLINE long find(const unsigned* p, long n, unsigned wanted) {
  for (long i = 0; i < n; ++i)
    if (p[i] == wanted) return i;
  return -1;
}
NOINLINE u64 until_zero(const unsigned char* text) {
  u64 s = 0;
  while (*text != 0) s = s * 31 + *text++;
  return s;
}
NOINLINE void add(unsigned* restrict to, const unsigned* restrict from, long n) {
  for (long i = 0; i < n; ++i) to[i] += from[i];
}
NOINLINE void fill_odd(unsigned* restrict to, long n, unsigned x) {  // every second: what lies between stays
  for (long i = 1; i < n; i += 2) to[i] = x;
}
NOINLINE void reverse_fill(unsigned* to, long n, unsigned x) {
  for (long i = n; i-- > 0;) to[i] = x + (unsigned)i;
}
NOINLINE void shift(unsigned* p, long n) {  // each round reads what the one before has written
  for (long i = 1; i < n; ++i) p[i] += p[i - 1];
}
NOINLINE u64 gather(const unsigned* p, const unsigned* at, long n) {
  u64 s = 0;
  for (long i = 0; i < n; ++i) s += p[at[i] % (unsigned)n];
  return s;
}
// Its second row begins in the midst of the block.
NOINLINE u64 nearest(const unsigned* point, unsigned* const* centres, long count, long n) {
  u64 least = ~(u64)0;
  for (long k = 0; k < count; ++k) {
    u64 apart = (u64)k;
    for (long i = n / 2; i < n; ++i) apart += (u64)(point[i] ^ centres[k][i]);
    if (apart < least) least = apart;
  }
  return least;
}
// From a pointer that stands before the array.
NOINLINE u64 from_one(const unsigned* p, long n) {
  u64 s = 0;
  for (long i = 1; i <= n; ++i) s = s * 3 + p[i];
  return s;
}
// Nothing of the range may be used where the first is 0.
NOINLINE u64 sometimes(const unsigned* p, long n, long from) {
  u64 s = 0;
  for (long i = from; i < n; ++i)
    if (i >= 0) s += p[i] * (unsigned)(i + 1);
  return s;
}

// --- signals that leave a loop for good
static sigjmp_buf g_back;
static volatile sig_atomic_t g_may_leave = 0;
static void leave(int number) {
  (void)number;
  if (g_may_leave == 0) return;
  g_may_leave = 0;
  siglongjmp(g_back, 1);
}

static u64 signals(unsigned** blocks, long n) {
  static volatile int left = 0;
  static volatile u64 wrong = 0;
  const u64 expected = sum(blocks[0], n);
  unsigned* private = malloc((size_t)n * sizeof *private);
  signal(SIGALRM, leave);
  const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  while (left < 50) {
    if (sigsetjmp(g_back, 1) != 0) {
      left = left + 1;
      continue;
    }
    g_may_leave = 1;
    for (;;) {
      if (sum(blocks[0], n) != expected) wrong = wrong + 1;
      reverse_fill(private, n, 5);
    }
  }
  setitimer(ITIMER_REAL, &never, NULL);
  reverse_fill(private, n, 7);
  for (long i = 0; i < n; ++i) wrong += private[i] != 7 + (unsigned)i;
  free(private);
  return wrong;
}

int main(void) {
  static unsigned* blocks[kBlocks];
  static long lengths[kBlocks];
  for (u64 i = 0; i < kBlocks; ++i) {
    lengths[i] = 1 + (long)(next_number() % (i % 5 == 0 ? 600 : 500));  // some are too large for an object
    blocks[i] = malloc((size_t)lengths[i] * sizeof **blocks);
    reverse_fill(blocks[i], lengths[i], (unsigned)i);
  }
  lengths[0] = 500;
  free(blocks[0]);
  blocks[0] = malloc(500 * sizeof **blocks);
  reverse_fill(blocks[0], 500, 0);
  u64 digest = 1;
  for (int round = 0; round < 20000; ++round) {
    const u64 i = next_number() % kBlocks, k = next_number() % kBlocks;
    unsigned *a = blocks[i], *b = blocks[k];
    const long n = lengths[i], both = lengths[k] < n ? lengths[k] : n;
    digest = digest * 31 + sum(a, n) + backwards(a, n) + (u64)find(a, n, (unsigned)(i + next_number() % 700));
    if (i != k) add(a, b, both);
    if (round % 3 == 0) fill_odd(a, n, (unsigned)round);
    if (round % 7 == 0) reverse_fill(b, lengths[k], (unsigned)round);
    if (round % 5 == 0) shift(a, n);
    digest += gather(a, a, n) + nearest(a, blocks + k % (kBlocks - 8), round % 4, 0) + from_one(a - 1, n);
    digest = digest * 7 + sometimes(a, n, -(long)(next_number() % 1000)) + sometimes(NULL, 0, -5);
    if (round % 11 == 0) {  // used without a guard, so that its page goes home
      volatile unsigned* plain = a;
      memset(a, 1, (size_t)n * sizeof *a);
      a[n - 1] = plain[0] & 0xffffff;
      digest += until_zero((const unsigned char*)a);
    }
    if (round % 50 == 0) {
      unsigned* rows[4] = {blocks[0], blocks[0], blocks[0], blocks[0]};
      digest += nearest(blocks[0], rows, 4, 500);
    }
  }
  printf("%llx\n", (unsigned long long)digest);
  printf("%llx\n", (unsigned long long)signals(blocks, 500));
  for (u64 i = 0; i < kBlocks; ++i) {
    digest = digest * 31 + sum(blocks[i], lengths[i]);
    free(blocks[i]);
  }
  printf("%llx\n", (unsigned long long)digest);
  return 0;
}
