// What came out of a call: into the lane's digest, and printed when the sequence is traced.
#include "lane.h"

long g_traced = -1;
extern long g_first;  // main.c: the sequence of lane 0

static uint64_t mix(uint64_t digest, uint64_t value) {
  digest = (digest ^ value) * 0x9e3779b97f4a7c15u;
  return digest ^ digest >> 29;
}

static bool traced(const struct Lane* lane) { return g_traced == g_first + (long)lane->number; }

void record(struct Lane* lane, const char* what, long a, long b, long c, long result, int error) {
  lane->digest = mix(mix(lane->digest, (uint64_t)result), (uint64_t)error);
  if (!traced(lane)) return;
  char line[200];
  int length = snprintf(line, sizeof line, "%s%u %s %ld %ld %ld: %ld %d\n", lane->forked ? "child " : "", lane->call,
                        what, a, b, c, result, error);
  CHECK(write(1, line, (size_t)length) == length);
}

void record_digest(struct Lane* lane, const char* what, uint64_t digest) {
  record(lane, what, 0, 0, 0, (long)(digest >> 1), 0);
}
