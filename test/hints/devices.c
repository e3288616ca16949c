// Regions on devices of their own, beside each other and beside the program's memory: what is refused, that each byte
// stays, in a forked child too, and, with the argument "loss", that nobody but the pages on a lost server is lost.
// Else the argument says what a region must be: "far" or "ordinary".
#include <errno.h>
#include <hinterland/region.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define SIZE (12 * MIB)
#define WORDS (SIZE / 8)

static int g_wrong;
static sigjmp_buf g_out;

static void expect(int right, const char* what) {
  if (right) return;
  printf("wrong: %s (%s)\n", what, hl_region_error());
  ++g_wrong;
}

static int create(struct hl_region* region, const char* device) {
  const struct hl_region_options options = {HL_SHARE_COMMON, HL_RDAHEAD_DEFAULT, NULL, device, NULL};
  return hl_region_create(region, SIZE, &options);
}

static void fill(uint64_t* words, uint64_t version) {
  for (size_t i = 0; i < WORDS; i += 64) words[i] = i * version + 1;
}

static int is_filled(const uint64_t* words, uint64_t version) {
  for (size_t i = 0; i < WORDS; i += 64) {
    if (i % 4096 == 0) hl_prefetch(&words[i], 65536);
    if (words[i] != i * version + 1) return 0;
  }
  return 1;
}

static void refuse(void) {
  struct hl_region region;
  expect(create(&region, "nonsense:") == EINVAL && strstr(hl_region_error(), "nonsense") != NULL, "no such device");
  expect(create(&region, "") != 0, "no URL");
  expect(create(&region, "file:/nowhere/at/all") == ENOENT && strstr(hl_region_error(), "/nowhere/at/all") != NULL,
         "a file in no directory");
  expect(create(&region, "tcp://127.0.0.1:1") == ECONNREFUSED && region.data == NULL, "no server");
  // A program that was compiled when the options had no device: what follows them in memory is not theirs.
  struct {
    size_t share;
    int32_t rdahead;
    const char* policy;
    const char* not_of_it;
  } old = {HL_SHARE_COMMON, HL_RDAHEAD_DEFAULT, NULL, "nonsense:"};
  expect(hl__runtime()->region_create(&region, MIB, (const struct hl_region_options*)&old) == 0, "shorter options");
  expect(hl_region_destroy(&region) == 0, "destroy");
  // One that is compiled when they have more.
  struct {
    struct hl_region_options options;
    uint64_t more;
  } newer = {{HL_SHARE_COMMON, HL_RDAHEAD_DEFAULT, NULL, NULL, NULL}, 0};
  expect(hl__runtime()->region_create_sized(&region, MIB, &newer.options, sizeof newer) == 0, "longer options");
  expect(hl_region_destroy(&region) == 0, "destroy");
  newer.more = 1;
  expect(hl__runtime()->region_create_sized(&region, MIB, &newer.options, sizeof newer) == ENOTSUP, "an unknown one");
}

static void too_many(void) {
  struct hl_region regions[16];
  char url[64];
  int error = 0, made = 0;
  for (; made < 16 && error == 0; ++made) {
    snprintf(url, sizeof url, "mem:?size=%dM", 16 * (made + 1));
    error = create(&regions[made], url);
  }
  expect(error == ENOSPC && strstr(hl_region_error(), "8 far devices") != NULL, "so many devices");
  expect(create(&regions[made - 1], "mem:?size=16M") == 0, "one that is open");
  for (int i = 0; i < made; ++i) expect(hl_region_destroy(&regions[i]) == 0, "destroy");
}

static void fork_with(struct hl_region* regions, int count, uint64_t* own) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    struct hl_region other;
    const int error = create(&other, "zmem:zstd");
    if (error == ENOTSUP) _exit(0);  // of a program that links the runtime
    int right = error == 0 && is_filled(own, 9);
    for (int i = 0; i < count; ++i) right &= is_filled(regions[i].data, (uint64_t)i + 2);
    for (int i = 0; i < count; ++i) fill(regions[i].data, 77);
    fill(other.data, 78);
    for (int i = 0; i < count; ++i) right &= is_filled(regions[i].data, 77);
    _exit(right && is_filled(other.data, 78) ? 0 : 1);
  }
  expect(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "a forked child");
}

static void keep_bytes(int far) {
  const char* devices[] = {"zmem:", "sim:latency=20us,inner=mem:", "zmem:", NULL,
                           "file:/var/tmp/hinterland-regions?size=32M"};
  enum { kRegions = sizeof devices / sizeof devices[0] };
  struct hl_region regions[kRegions];
  uint64_t* own = malloc(SIZE);
  if (own == NULL) exit(1);
  fill(own, 9);
  for (int i = 0; i < kRegions; ++i) {
    expect(create(&regions[i], devices[i]) == 0, devices[i] == NULL ? "the program's device" : devices[i]);
    if (regions[i].data == NULL) return;
    expect((regions[i].inside != 0) == far, "far or ordinary");
    fill(regions[i].data, (uint64_t)i + 2);
  }
  for (int i = kRegions - 1; i >= 0; --i) expect(is_filled(regions[i].data, (uint64_t)i + 2), "a region's bytes");
  expect(is_filled(own, 9), "the program's own");
  fork_with(regions, kRegions, own);
  expect(hl_region_destroy(&regions[1]) == 0, "destroy");
  for (int i = 0; i < kRegions; ++i)
    if (i != 1) expect(is_filled(regions[i].data, (uint64_t)i + 2), "bytes, after a fork and without a neighbour");
  expect(is_filled(own, 9), "the program's own, after it");
  for (int i = 0; i < kRegions; ++i) expect(hl_region_destroy(&regions[i]) == 0, "destroy");
  free(own);
}

static void leave(int number) {
  (void)number;
  siglongjmp(g_out, 1);
}

// 1: right, 0: wrong, -1: SIGBUS.
static int look(const uint64_t* words, size_t i, uint64_t version) {
  if (sigsetjmp(g_out, 1) != 0) return -1;
  return *(volatile const uint64_t*)&words[i] == i * version + 1;
}

// The region's server ends when this says so; the program's memory, and another region, go on.
static void lose(const char* device) {
  struct hl_region lost, kept;
  struct sigaction action = {.sa_handler = leave, .sa_flags = SA_NODEFER};
  uint64_t* own = malloc(SIZE);
  long seen[3] = {0, 0, 0};
  sigaction(SIGBUS, &action, NULL);
  expect(own != NULL && create(&lost, device) == 0 && create(&kept, "zmem:zstd") == 0, "create");
  if (g_wrong != 0) return;
  fill(lost.data, 2);
  fill(kept.data, 3);
  fill(own, 4);
  printf("ready\n");
  fflush(stdout);
  if (getchar() != '\n') exit(1);
  for (size_t i = 0; i < WORDS; i += 512) ++seen[look(lost.data, i, 2) + 1];
  expect(seen[0] > 1000 && seen[1] == 0, "what is lost raises SIGBUS");
  for (uint64_t round = 5; round < 8; ++round) {
    expect(is_filled(kept.data, round == 5 ? 3 : round - 1) && is_filled(own, round == 5 ? 4 : round - 1),
           "the others");
    fill(kept.data, round);
    fill(own, round);
  }
  expect(hl_region_destroy(&lost) == 0 && hl_region_destroy(&kept) == 0, "destroy");
}

int main(int count, char** arguments) {
  int far = count > 1 && strcmp(arguments[1], "far") == 0;
  if (count > 2) {
    lose(arguments[2]);
  } else {
    keep_bytes(far);
    if (far) refuse();
    if (far) too_many();
  }
  printf("%d wrong\n", g_wrong);
  return g_wrong != 0;
}
