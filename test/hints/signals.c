// A signal handler that touches far memory, on a thread that hints all the time: no handler at first, when hints need
// not block signals, then one that is installed while hints are under way. Nobody may wait for himself.
// With the argument "raw" it is installed by syscall(2).
#include <hinterland/hint.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kPageWords = 512, kPages = 6144, kSignals = 2000 };

static uint64_t* g_words;
static atomic_ulong g_handled, g_wrong, g_hinted;
static atomic_int g_end;

static uint64_t random_page(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (*state >> 33) % kPages;
}

static void check(uint64_t page) {
  if (g_words[page * kPageWords] != page) atomic_fetch_add(&g_wrong, 1);
}

static void handler(int number) {
  static uint64_t state = 7;
  (void)number;
  for (int i = 0; i < 3; ++i) {
    uint64_t page = random_page(&state);
    if (i == 1) hl_write(&g_words[page * kPageWords]);
    check(page);
  }
  atomic_fetch_add(&g_handled, 1);
}

static void* hint_all_the_time(void* unused) {
  uint64_t state = 1;
  (void)unused;
  while (!atomic_load(&g_end)) {
    uint64_t page = random_page(&state);
    hl_read(&g_words[page * kPageWords]);
    check(page);
    atomic_fetch_add(&g_hinted, 1);
  }
  return NULL;
}

static void wait_for(atomic_ulong* counter, unsigned long least) {
  struct timespec moment = {0, 20000};
  while (atomic_load(counter) < least) nanosleep(&moment, NULL);
}

// The kernel's struct sigaction, which libc's differs from.
struct kernel_action {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)(void);
  uint64_t mask;
};
void return_from_signal(void);
__asm__(
    ".text\n"
    "return_from_signal:\n"
    "mov $15, %eax\n"
    "syscall\n");

static int install_raw(void) {
  struct kernel_action action = {handler, SA_RESTART | 0x04000000, return_from_signal, 0};
  return (int)syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, sizeof action.mask);
}

int main(int count, char** words) {
  pthread_t thread;
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  struct timespec moment = {0, 20000};
  g_words = aligned_alloc(4096, (size_t)kPages * 4096);
  if (g_words == NULL) return 1;
  for (uint64_t page = 0; page < kPages; ++page)
    for (int i = 0; i < kPageWords; ++i)
      g_words[page * kPageWords + (uint64_t)i] = i == 0 ? page : page * 7 + (uint64_t)i;
  if (pthread_create(&thread, NULL, hint_all_the_time, NULL) != 0) return 1;
  wait_for(&g_hinted, 3000);
  const int raw = count > 1 && strcmp(words[1], "raw") == 0;
  if ((raw ? install_raw() : sigaction(SIGUSR1, &action, NULL)) != 0) return 1;
  for (int i = 0; i < kSignals; ++i) {
    unsigned long before = atomic_load(&g_handled);
    pthread_kill(thread, SIGUSR1);
    while (atomic_load(&g_handled) == before) nanosleep(&moment, NULL);
  }
  atomic_store(&g_end, 1);
  pthread_join(thread, NULL);
  printf("%lu signals handled, %lu wrong\n", atomic_load(&g_handled), atomic_load(&g_wrong));
  return 0;
}
