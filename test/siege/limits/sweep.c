// Every limit that a program can set for itself, at many values: sweep [STEP]. For each a forked child sets it, looks
// at its far memory, and does what the limit may be about; one line says what came of each. Natively the lines are
// the same, except near what the program itself uses (test_sweep.py).
#include "../../preload/report.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { kPage = 4096, kPages = 2048 };  // 8 MiB, twice the budget

static const struct {
  int resource;
  const char* name;
} kLimits[] = {{RLIMIT_AS, "AS"},
               {RLIMIT_CORE, "CORE"},
               {RLIMIT_DATA, "DATA"},
               {RLIMIT_FSIZE, "FSIZE"},
               {RLIMIT_LOCKS, "LOCKS"},
               {RLIMIT_MEMLOCK, "MEMLOCK"},
               {RLIMIT_MSGQUEUE, "MSGQUEUE"},
               {RLIMIT_NICE, "NICE"},
               {RLIMIT_NOFILE, "NOFILE"},
               {RLIMIT_NPROC, "NPROC"},
               {RLIMIT_RSS, "RSS"},
               {RLIMIT_RTPRIO, "RTPRIO"},
               {RLIMIT_RTTIME, "RTTIME"},
               {RLIMIT_SIGPENDING, "SIGPENDING"},
               {RLIMIT_STACK, "STACK"},
               {RLIMIT_CPU, "CPU"}};

static uint64_t* g_memory;

static uint64_t word_of(size_t page) { return (page + 1) * 0x9e3779b97f4a7c15u; }

static bool is_right(const uint64_t* memory) {
  bool right = true;
  for (size_t page = 0; page < kPages; ++page) right &= memory[page * (kPage / 8) + page % 512] == word_of(page);
  return right;
}
static void fill(uint64_t* memory) {
  for (size_t page = 0; page < kPages; ++page) memory[page * (kPage / 8) + page % 512] = word_of(page);
}

static void* run_thread(void* unused) { return is_right(g_memory) ? &g_memory : unused; }

static int result_of(bool well) { return well ? 0 : errno; }

static int new_memory(void) {
  uint64_t* made = mmap(NULL, (size_t)kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return errno;
  fill(made);
  bool right = is_right(made) && is_right(g_memory);
  munmap(made, (size_t)kPages * kPage);
  return right ? 0 : -1;
}

static int allocated(void) {
  char* made = malloc(3 << 20);
  if (made == NULL) return errno;
  memset(made, 7, 3 << 20);
  bool right = made[0] == 7 && made[(3 << 20) - 1] == 7;
  free(made);
  return right ? 0 : -1;
}

static int new_thread(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  void* right = NULL;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  int error = pthread_create(&thread, &attributes, run_thread, NULL);
  if (error != 0) return error;
  return pthread_join(thread, &right) == 0 && right != NULL ? 0 : -1;
}

static int new_child(void) {
  pid_t child = fork();
  if (child == 0) {
    bool right = is_right(g_memory);
    fill(g_memory);
    _exit(right && is_right(g_memory) ? 0 : 1);
  }
  int status = 0;
  if (child < 0) return errno;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : -status;
}

static int new_descriptor(void) {
  int made = dup(1);
  if (made < 0) return errno;
  close(made);
  return 0;
}

static int written(int file) {
  char bytes[10000] = {1};
  ssize_t done = pwrite(file, bytes, sizeof bytes, 0);
  return done < 0 ? errno : (int)done;
}

static int locked(void) {
  int result = result_of(mlock(g_memory, 64 * kPage) == 0);
  munlock(g_memory, 64 * kPage);
  return result;
}

static int new_timer(void) {
  timer_t timer;
  int result = result_of(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0);
  if (result == 0) timer_delete(timer);
  return result;
}

static void child_of(int which, rlim_t value, int file) {
  struct rlimit limit, seen;
  alarm(60);
  CHECK(getrlimit(kLimits[which].resource, &limit) == 0);
  rlim_t wanted = value < limit.rlim_max ? value : limit.rlim_max;
  limit.rlim_cur = wanted;
  int set = result_of(setrlimit(kLimits[which].resource, &limit) == 0);
  bool read = getrlimit(kLimits[which].resource, &seen) == 0 && (set != 0 || seen.rlim_cur == wanted);
  // Each on its own, before anything is printed: what comes of one may be all that natively works.
  bool right = is_right(g_memory);
  int memory = new_memory(), heap = allocated(), thread = new_thread(), child = new_child();
  int descriptor = new_descriptor(), bytes = written(file), lock = locked(), timer = new_timer();
  char line[300];
  int length = snprintf(line, sizeof line,
                        "%s %llu set %d %d far %d memory %d heap %d thread %d child %d descriptor %d file %d lock %d "
                        "timer %d end %d\n",
                        kLimits[which].name, (unsigned long long)value, set, read, right, memory, heap, thread, child,
                        descriptor, bytes, lock, timer, is_right(g_memory));
  // To the descriptor that there was: standard output may be a file, and those have a limit here.
  _exit(write(1, line, (size_t)length) == length ? 0 : 5);
}

static void try(int which, rlim_t value, int file) {
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) child_of(which, value, file);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  if (status != 0) printf("%s %llu ended %x\n", kLimits[which].name, (unsigned long long)value, (unsigned)status);
  fflush(stdout);
  if (!is_right(g_memory)) printf("%s %llu: wrong in the parent\n", kLimits[which].name, (unsigned long long)value);
}

// sweep [STEP]: all powers of two whose exponent is a multiple of STEP (1), and 0 to 5; CPU time from a minute up,
// since how much of it a run takes is nobody's promise.
int main(int count, char** words) {
  check_preloaded();
  signal(SIGXFSZ, SIG_IGN);
  int step = count > 1 ? atoi(words[1]) : 1;
  char name[] = "./sweep-XXXXXX";
  int file = mkstemp(name);
  CHECK(step > 0 && file >= 0 && unlink(name) == 0);
  g_memory = mmap(NULL, (size_t)kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(g_memory != MAP_FAILED);
  fill(g_memory);
  for (int which = 0; which < (int)(sizeof kLimits / sizeof *kLimits); ++which) {
    bool is_time = kLimits[which].resource == RLIMIT_CPU || kLimits[which].resource == RLIMIT_RTTIME;
    for (rlim_t value = 0; !is_time && value < 6; ++value)
      if (step == 1 || value % 5 == 0) try(which, value, file);
    for (int shift = is_time ? 26 : 3; shift < 48; ++shift)
      if (shift % step == 0) try(which, (rlim_t)1 << shift, file);
    try(which, RLIM_INFINITY, file);
  }
  return 0;
}
