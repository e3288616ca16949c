/* A program whose faults are known: places with shares that the test computes beforehand.
 *
 * subject PAGES ROUNDS [THREADS]: fills an array of PAGES pages, then ROUNDS times reads each page once in a random
 * order (read_pages), writes a quarter as many (write_pages), and copies an eighth as many out (copy_pages: memcpy).
 * After SIGUSR1 it ends with that round. It prints a sum, and how many rounds there were.
 *
 * subject fork PAGES: the child does the same with its own copy.
 *
 * subject die PAGES: dies of SIGKILL in the middle.
 *
 * subject calls PAGES: a thread waits in system calls meanwhile, which no signal may interrupt: status 5 if one did.
 *
 * The lines that touch far memory are marked: the test finds their numbers by the marks. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096 };

static volatile sig_atomic_t g_enough = 0;

static void enough(int number) {
  (void)number;
  g_enough = 1;
}

struct work {
  char* memory;
  size_t pages, rounds;
  uint64_t state;
  uint64_t sum;
};

static uint64_t next(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

__attribute__((noinline)) static uint64_t read_pages(struct work* work, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) {
    char* page = work->memory + next(&work->state) % work->pages * PAGE;
    sum += *(volatile uint64_t*)(page + 64); /* MARK read */
  }
  return sum;
}

__attribute__((noinline)) static void write_pages(struct work* work, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    char* page = work->memory + next(&work->state) % work->pages * PAGE;
    *(volatile uint64_t*)(page + 128) = i; /* MARK write */
  }
}

static inline __attribute__((always_inline)) void copy_one(char* to, const char* from, size_t length) {
  memcpy(to, from, length); /* MARK copy */
}

__attribute__((noinline)) static uint64_t copy_pages(struct work* work, size_t count) {
  static __thread char buffer[PAGE];
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) {
    size_t length = 512 + next(&work->state) % 2048;
    copy_one(buffer, work->memory + next(&work->state) % work->pages * PAGE, length);
    sum += (unsigned char)buffer[i % 512];
  }
  return sum;
}

static void* run(void* argument) {
  struct work* work = argument;
  size_t most = work->rounds;
  for (work->rounds = 0; work->rounds < most && !g_enough; ++work->rounds) {
    work->sum += read_pages(work, work->pages);
    write_pages(work, work->pages / 4);
    work->sum += copy_pages(work, work->pages / 8);
  }
  return NULL;
}

static volatile sig_atomic_t g_ended = 0;

/* poll(2) is never restarted by itself, whatever SA_RESTART says. Returns how often it was interrupted. */
static void* wait_in_calls(void* argument) {
  (void)argument;
  size_t interrupted = 0;
  while (!g_ended) interrupted += poll(NULL, 0, 1) < 0 && errno == EINTR;
  return (void*)interrupted;
}

static void fill(struct work* work) {
  work->memory = aligned_alloc(PAGE, work->pages * PAGE);
  if (work->memory == NULL) exit(3);
  for (size_t i = 0; i < work->pages; ++i) memset(work->memory + i * PAGE, (int)(i % 251) + 1, PAGE); /* MARK fill */
}

/* Whether a thread of the process has this name. */
static int has_thread(const char* wanted) {
  DIR* threads = opendir("/proc/self/task");
  int found = 0;
  for (struct dirent* thread; threads != NULL && !found && (thread = readdir(threads)) != NULL;) {
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", thread->d_name);
    FILE* file = fopen(path, "r");
    if (file == NULL) continue;
    found = fgets(name, sizeof name, file) != NULL && strncmp(name, wanted, strlen(wanted)) == 0;
    fclose(file);
  }
  if (threads != NULL) closedir(threads);
  return found;
}

/* On a busy machine all this may be over before paging begins, and a trace needs its faults. */
static void await_paging(const struct work* work) {
  const char *preloaded = getenv("LD_PRELOAD"), *local = getenv("HINTERLAND_LOCAL");
  if (preloaded == NULL || local == NULL || work->pages * PAGE <= strtoull(local, NULL, 10)) return;
  for (int looks = 0; looks < 50000 && !has_thread("hl-reclaim"); ++looks) usleep(1000);
}

int main(int count, char** arguments) {
  int forks = count > 1 && strcmp(arguments[1], "fork") == 0, dies = count > 1 && strcmp(arguments[1], "die") == 0;
  int calls = count > 1 && strcmp(arguments[1], "calls") == 0, shift = forks || dies || calls;
  struct work work = {.pages = count > 1 + shift ? strtoul(arguments[1 + shift], NULL, 10) : 8192,
                      .rounds = count > 2 + shift ? strtoul(arguments[2 + shift], NULL, 10) : 1,
                      .state = 42};
  int threads = count > 3 + shift ? atoi(arguments[3 + shift]) : 1;
  signal(SIGUSR1, enough);
  fill(&work);
  await_paging(&work);
  pid_t child = forks ? fork() : 1;
  pthread_t other[16], waiter;
  if (calls) pthread_create(&waiter, NULL, wait_in_calls, NULL);
  struct work others[16];
  for (int i = 1; i < threads && i < 16; ++i) {
    others[i] = work;
    others[i].state = (uint64_t)i * 1000;
    pthread_create(&other[i], NULL, run, &others[i]);
  }
  run(&work);
  for (int i = 1; i < threads && i < 16; ++i) pthread_join(other[i], NULL);
  if (dies) kill(getpid(), SIGKILL);
  void* interrupted = NULL;
  g_ended = 1;
  if (calls) pthread_join(waiter, &interrupted);
  if (interrupted != NULL) return 5;
  if (child == 0) _exit(0);
  int status = 0;
  if (forks && (waitpid(child, &status, 0) != child || status != 0)) return 4;
  printf("%llu in %zu rounds\n", (unsigned long long)work.sum, work.rounds);
  return 0;
}
