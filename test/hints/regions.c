// Regions: what is refused, that each byte stays, with hints of every kind, and that destroying one that is in use
// ends in SIGSEGV, not in waiting for ever. The argument says what a region must be: "far" or "ordinary".
#include <errno.h>
#include <hinterland/region.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static int g_wrong;
static sigjmp_buf g_out;
static atomic_int g_touching;

static void expect(int right, const char* what) {
  if (right) return;
  printf("wrong: %s (%s)\n", what, hl_region_error());
  ++g_wrong;
}

static int create(struct hl_region* region, size_t size, size_t share, int32_t rdahead, const char* policy) {
  const struct hl_region_options options = {share, rdahead, policy, NULL, NULL};
  return hl_region_create(region, size, &options);
}

static void refuse(int far) {
  struct hl_region region, other;
  expect(hl_region_create(&region, 0, NULL) == EINVAL && region.data == NULL, "a region of no bytes");
  expect(hl_region_create(&region, (size_t)-1, NULL) != 0 && region.data == NULL, "a region of all bytes");
  expect(hl_region_create(&region, (size_t)1 << 62, NULL) == ENOMEM, "a region of half of them");
  expect(create(&region, MIB, 0, -2, NULL) == EINVAL, "read-ahead of -2");
  expect(hl_region_destroy(&region) == 0, "destroying no region");
  if (!far) return;
  expect(create(&region, MIB, 0, 0, "nonsense") == EINVAL && strstr(hl_region_error(), "policy") != NULL,
         "no policy");
  expect(create(&region, MIB, 6 * MIB, 0, NULL) == EDQUOT && strstr(hl_region_error(), "half") != NULL, "6 of 8 MiB");
  expect(create(&region, MIB, 3 * MIB, 0, "fifo") == 0, "3 of 8 MiB");
  expect(create(&other, MIB, 3 * MIB, 0, NULL) == EDQUOT, "3 of 8 MiB again");
  expect(hl_region_destroy(&region) == 0 && region.data == NULL, "destroy");
  expect(create(&other, MIB, 3 * MIB, 0, NULL) == 0, "the share is free again");
  expect(hl_region_destroy(&other) == 0, "destroy");
}

static void keep_bytes(size_t share, int32_t rdahead, const char* policy) {
  struct hl_region region;
  uint64_t random = 1;
  expect(create(&region, 24 * MIB + 1, share, rdahead, policy) == 0 && region.size == 24 * MIB + 65536, "create");
  if (region.data == NULL) return;
  uint64_t* words = region.data;
  const size_t count = region.size / sizeof *words;
  for (size_t i = 0; i < count; i += 64) {
    if (words[i] != 0) expect(0, "a fresh region reads as zeros");
    words[i] = i + 1;
  }
  for (int step = 0; step < 4000; ++step) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const size_t at = (random >> 33) % (count / 64) * 64;
    switch (step % 8) {
      case 0:
        hl_prefetch(&words[at], 65536);
        break;
      case 1:
        hl_cold(&words[at], 65536);
        break;
      case 2:
        hl_hint(&words[at], .size = 20000, .rdahead = step % 64 - 32, .mut = step & 8, .ev_prio = step & 15);
        break;
      default:
        hl_read(&words[at]);
    }
    if (words[at] != at + 1) expect(0, "a word changed");
  }
  expect(hl_region_destroy(&region) == 0, "destroy");
}

static void leave(int number) {
  (void)number;
  siglongjmp(g_out, 1);
}

static void* touch_until_it_is_gone(void* words_in) {
  volatile uint64_t* words = words_in;
  if (sigsetjmp(g_out, 1) != 0) return NULL;
  for (uint64_t random = 1;;) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    if ((random & 1) != 0) hl_read((const void*)&words[(random >> 33) % (24 * MIB / 8)]);
    (void)words[(random >> 33) % (24 * MIB / 8)];
    atomic_fetch_add(&g_touching, 1);
  }
}

static void destroy_under_a_reader(void) {
  struct hl_region region;
  struct sigaction action = {.sa_handler = leave, .sa_flags = SA_NODEFER};
  pthread_t thread;
  sigaction(SIGSEGV, &action, NULL);
  expect(create(&region, 24 * MIB, 0, 0, NULL) == 0, "create");
  memset(region.data, 1, region.size);
  if (pthread_create(&thread, NULL, touch_until_it_is_gone, region.data) != 0) exit(1);
  while (atomic_load(&g_touching) < 2000) usleep(100);
  expect(hl_region_destroy(&region) == 0, "destroy under a reader");
  expect(pthread_join(thread, NULL) == 0, "join");  // hangs when somebody waits for ever
}

// Under `hinterland run` a child keeps regions; of a program that links the runtime it has none, and may say goodbye.
static void fork_with_a_region(void) {
  struct hl_region region, other;
  int status = 0;
  expect(create(&region, MIB, 0, 0, NULL) == 0, "create");
  memset(region.data, 1, region.size);
  const pid_t child = fork();
  if (child == 0) {
    const int error = hl_region_create(&other, MIB, NULL);
    const int kept = error == 0 && ((char*)region.data)[70000] == 1;
    _exit((kept || error == ENOTSUP) && hl_region_destroy(&region) == 0 ? 0 : 1);
  }
  expect(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "a forked child");
  expect(((char*)region.data)[70000] == 1 && hl_region_destroy(&region) == 0, "destroy after a fork");
}

int main(int count, char** arguments) {
  int far = count > 1 && strcmp(arguments[1], "far") == 0;
  struct hl_region region;
  const int error = hl_region_create(&region, MIB, NULL);
  if (error == 0) refuse(far);
  if (error == 0) {
    expect((region.inside != 0) == far, "far or ordinary");
    keep_bytes(HL_SHARE_COMMON, HL_RDAHEAD_DEFAULT, NULL);
    keep_bytes(2 * MIB, 0, "fifo");
    keep_bytes(0, 64, "second-chance");
    keep_bytes(HL_SHARE_COMMON, HL_RDAHEAD_DEFAULT, "lru");
    keep_bytes(0, HL_RDAHEAD_DEFAULT, "priority");
    fork_with_a_region();
    destroy_under_a_reader();
    expect(hl_region_destroy(&region) == 0, "destroy");
  } else {
    fprintf(stderr, "%s: %s\n", strerror(error), hl_region_error());
  }
  printf("%d wrong, error %d\n", g_wrong, error);
  return g_wrong != 0;
}
