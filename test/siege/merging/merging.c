// Equal pages that the kernel may merge (KSM), by madvise and by prctl, while they are read and written and leave
// local memory: no byte is lost, and the calls end as natively. As root the kernel's thread is put to work; it is as
// it was afterwards.
#include "../../preload/report.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#define PR_GET_MEMORY_MERGE 68
#endif

enum { kPage = 4096, kPages = 6000, kThreads = 2, kSeconds = 1, kMark = 64, kKinds = 4 };

static unsigned char* g_memory;
// What each page holds: a mark, and further back the same byte again and again.
static uint64_t g_marks[kPages];
static unsigned char g_bytes[kPages];

static const char* const kSettings[] = {"run", "pages_to_scan", "sleep_millisecs", "smart_scan"};
static const char* const kBusy[] = {"1", "20000", "1", "0"};
static char g_before[4][32];

static bool set_one(const char* name, const char* value) {
  char path[64];
  snprintf(path, sizeof path, "/sys/kernel/mm/ksm/%s", name);
  FILE* file = fopen(path, "w");
  if (file == NULL) return false;
  bool good = fputs(value, file) >= 0;
  return fclose(file) == 0 && good;
}

// The thread that merges is the machine's: it works until this program has ended, however that is.
static void put_merging_to_work(void) {
  for (int i = 0; i < 4; ++i) {
    char path[64];
    snprintf(path, sizeof path, "/sys/kernel/mm/ksm/%s", kSettings[i]);
    FILE* file = fopen(path, "r");
    if (file == NULL) continue;
    if (fgets(g_before[i], sizeof g_before[i], file) == NULL) g_before[i][0] = '\0';
    fclose(file);
  }
  if (g_before[0][0] == '\0' || !set_one("run", g_before[0])) {
    fprintf(stderr, "merging cannot be put to work: it needs KSM in the kernel, and root\n");
    exit(77);
  }
  int ready[2], alive[2];  // the program keeps an end of `alive`, and its children until they end
  CHECK(pipe(ready) == 0 && pipe(alive) == 0);
  char byte;
  if (fork() == 0) {
    for (int i = 3; i >= 0; --i) set_one(kSettings[i], kBusy[i]);
    CHECK(write(ready[1], "", 1) == 1);
    close(alive[1]);
    CHECK(read(alive[0], &byte, 1) == 0);
    for (int i = 3; i >= 0; --i)
      if (g_before[i][0] != '\0') set_one(kSettings[i], g_before[i]);
    _exit(0);
  }
  CHECK(read(ready[0], &byte, 1) == 1);
}

static uint64_t bytes_of(int page) { return 0x0101010101010101u * g_bytes[page]; }

static long wrong_words(int page) {
  const uint64_t* words = (const uint64_t*)(g_memory + (size_t)page * kPage);
  long wrong = words[0] != g_marks[page];
  for (int i = kMark / 8; i < kPage / 8; ++i) wrong += words[i] != bytes_of(page);
  return wrong;
}

static void* use_pages(void* argument) {
  long number = (long)argument, wrong = 0;
  uint64_t random = (uint64_t)number + 1;
  for (time_t end = time(NULL) + kSeconds; time(NULL) < end;)
    for (int i = 0; i < 200; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      int page = (int)(random >> 40) % (kPages / kThreads) * kThreads + (int)number;
      unsigned char* at = g_memory + (size_t)page * kPage;
      wrong += wrong_words(page) != 0;
      switch (random >> 33 & 7) {
        case 0:
          g_bytes[page] = random >> 37 & (kKinds - 1);
          memset(at + kMark, g_bytes[page], kPage - kMark);
          break;
        case 1:
          g_marks[page] = random;
          memcpy(at, &g_marks[page], 8);
          break;
        case 2:
        case 3:
          g_marks[page] = 0;
          memcpy(at, &g_marks[page], 8);
      }
    }
  return (void*)wrong;
}

static long wrong_after_use(void) {
  pthread_t threads[kThreads];
  long wrong = 0;
  for (long i = 0; i < kThreads; ++i) CHECK(pthread_create(&threads[i], NULL, use_pages, (void*)i) == 0);
  for (int i = 0; i < kThreads; ++i) {
    void* found;
    CHECK(pthread_join(threads[i], &found) == 0);
    wrong += (long)found;
  }
  for (int page = 0; page < kPages; ++page) wrong += wrong_words(page) != 0;
  return wrong;
}

static void show(const char* what, int result) { printf("%s: %d errno %d\n", what, result, result < 0 ? errno : 0); }

int main(void) {
  put_merging_to_work();
  size_t length = (size_t)kPages * kPage;
  g_memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(g_memory != MAP_FAILED);
  for (int page = 0; page < kPages; ++page) {
    g_bytes[page] = (unsigned char)(page % kKinds);
    memset(g_memory + (size_t)page * kPage + kMark, g_bytes[page], kPage - kMark);
  }
  show("mergeable", madvise(g_memory, length, MADV_MERGEABLE));
  printf("advised: wrong %ld\n", wrong_after_use());
  show("no longer", madvise(g_memory, length, MADV_UNMERGEABLE));
  show("not a page", madvise(g_memory + 1, length, MADV_MERGEABLE));
  show("is merged", prctl(PR_GET_MEMORY_MERGE, 0, 0, 0, 0));
  show("merge all", prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0));
  show("badly", prctl(PR_SET_MEMORY_MERGE, 1, 1, 0, 0));
  show("asked badly", prctl(PR_GET_MEMORY_MERGE, 1, 0, 0, 0));
  show("is merged", prctl(PR_GET_MEMORY_MERGE, 0, 0, 0, 0));
  printf("all: wrong %ld\n", wrong_after_use());
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit(prctl(PR_GET_MEMORY_MERGE, 0, 0, 0, 0) == 1 && wrong_after_use() == 0 ? 6 : 7);
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  printf("child %d\n", WEXITSTATUS(status));
  show("merge none", prctl(PR_SET_MEMORY_MERGE, 0, 0, 0, 0));
  show("is merged", prctl(PR_GET_MEMORY_MERGE, 0, 0, 0, 0));
  return 0;
}
