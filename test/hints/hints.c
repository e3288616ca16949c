// Hints in a program: right and wrong ones, on local, far, freed and foreign memory, in all places a program may put
// them. Its output must not depend on whether anybody listens.
#include <errno.h>
#include <hinterland/hint.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kPage = 4096, kPages = 4096 };  // 16 MiB; the budget is 4

static unsigned char* g_memory;

static __thread uint64_t g_random = 88172645463325252u;
static uint64_t next_random(void) {
  g_random ^= g_random << 13;
  g_random ^= g_random >> 7;
  return g_random ^= g_random << 17;
}

static uint64_t* word_of(size_t page) { return (uint64_t*)(g_memory + page * kPage); }

static void* take(size_t pages) {
  void* memory = mmap(NULL, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  return memory;
}

static void fill(void) {
  for (size_t page = 0; page < kPages; ++page)
    for (size_t i = 0; i < kPage / 8; i += 64) word_of(page)[i] = page * 1000 + i;
}

static size_t wrong_pages(uint64_t added) {
  size_t wrong = 0;
  for (size_t page = 0; page < kPages; ++page) {
    hl_seq_read(word_of(page));
    wrong += word_of(page)[0] != page * 1000 + added || word_of(page)[448] != page * 1000 + 448;
  }
  return wrong;
}

// A constructor runs before main, and hints there must do no harm.
__attribute__((constructor)) static void hint_in_constructor(void) {
  static int here;
  hl_write(&here);
  hl_seq_read(&here);
}

static void random_reads(void) {
  uint64_t sum = 0;
  g_random = 88172645463325252u;
  for (int i = 0; i < 20000; ++i) {
    size_t page = next_random() % kPages;
    hl_read(word_of(page));
    sum += *word_of(page);
  }
  printf("random reads %llu\n", (unsigned long long)sum);
}

static void every_form(void) {
  for (size_t page = 0; page < kPages; ++page) {
    if (page % 3 == 0)
      hl_write(word_of(page));
    else if (page % 3 == 1)
      hl_hint(word_of(page), .mut = 1, .size = 2 * kPage, .rdahead = 5, .ev_prio = 3);
    else
      hl_seq_write(word_of(page));
    word_of(page)[0] += 1;
  }
  for (size_t page = kPages; page-- > 0;) {
    hl_hint(word_of(page), .seq = 1, .mut = true);
    word_of(page)[0] += 1;
  }
  int evaluated = 0;
  hl_hint(word_of((size_t)evaluated++), .rdahead = -4);
  hl_seq_read(word_of((size_t)evaluated++));
  hl_read(word_of((size_t)evaluated++));
  printf("every form: wrong %zu, evaluated %d\n", wrong_pages(2), evaluated);
}

static void bad_addresses(void) {
  errno = 77;
  void* block = malloc(100000);
  volatile uintptr_t freed = (uintptr_t)block;  // the compiler minds what happens to it
  unsigned char* unmapped = take(64);
  memset(unmapped, 1, 64 * kPage);
  munmap(unmapped, 64 * kPage);
  free(block);
  void* const addresses[] = {NULL,
                             (void*)1,
                             (void*)~(uintptr_t)0,
                             (void*)((uintptr_t)1 << 63),
                             (void*)((uintptr_t)1 << 47),
                             &g_memory,
                             (void*)freed,
                             unmapped,
                             g_memory - 1,
                             g_memory + (size_t)kPages * kPage - 1};
  const size_t sizes[] = {0, 1, kPage, 100 * kPage, SIZE_MAX};
  const int aheads[] = {0, 1, -1, 1000, -1000, INT32_MAX, INT32_MIN};
  for (size_t a = 0; a < sizeof addresses / sizeof *addresses; ++a)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s)
      for (size_t r = 0; r < sizeof aheads / sizeof *aheads; ++r) {
        hl_hint(addresses[a], .size = sizes[s], .rdahead = aheads[r], .mut = (a + s + r) % 2, .ev_prio = 99);
        hl_hint(addresses[a], .size = sizes[s], .rdahead = aheads[r], .seq = 1);
      }
  hl_discard(NULL, 0);
  hl_discard(addresses[2], SIZE_MAX);
  printf("bad addresses: wrong %zu, errno %d\n", wrong_pages(2), errno);
}

static void* hint_and_count(void* argument) {
  uint64_t seed = (uint64_t)(uintptr_t)argument * 7919 + 1;
  uint64_t sum = 0;
  for (int i = 0; i < 5000; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    size_t page = (size_t)(seed >> 33) % kPages;
    hl_hint(word_of(page), .size = kPage * (i % 5), .rdahead = i % 9 - 4);
    sum += *word_of(page);
  }
  return (void*)(uintptr_t)sum;
}

static void* map_and_unmap(void* argument) {
  for (int i = 0; i < 300; ++i) {
    unsigned char* memory = take(64);
    for (int page = 0; page < 64; ++page) memory[page * kPage] = (unsigned char)i;
    __atomic_store_n((unsigned char**)argument, memory, __ATOMIC_RELAXED);
    for (int page = 0; page < 64; ++page)
      if (memory[page * kPage] != (unsigned char)i) abort();
    munmap(memory, 64 * kPage);
  }
  return NULL;
}

// Hints for memory that another thread maps and unmaps at this moment.
static void* hint_what_goes(void* argument) {
  for (int i = 0; i < 20000; ++i) {
    unsigned char* memory = __atomic_load_n((unsigned char**)argument, __ATOMIC_RELAXED);
    hl_hint(memory + next_random() % (64 * kPage), .size = 8 * kPage, .mut = i % 2);
  }
  return NULL;
}

static void threads(void) {
  pthread_t all[6];
  unsigned char* shared = NULL;
  for (uintptr_t i = 0; i < 4; ++i) pthread_create(&all[i], NULL, hint_and_count, (void*)i);
  pthread_create(&all[4], NULL, map_and_unmap, &shared);
  pthread_create(&all[5], NULL, hint_what_goes, &shared);
  for (int i = 0; i < 6; ++i) {
    void* sum = NULL;
    pthread_join(all[i], &sum);
    printf("thread %d: %llu\n", i, (unsigned long long)(uintptr_t)sum);
  }
}

static volatile sig_atomic_t g_signals;
static void on_signal(int number) {
  (void)number;
  size_t page = (size_t)(++g_signals) * 37 % kPages;
  hl_write(word_of(page));
  word_of(page)[1] += 1;
}

// Handlers that hint and touch far memory, on a signal stack of the least size, while the thread below hints.
static void signals(void) {
  enum { kStack = 16384 };
  stack_t stack = {.ss_sp = malloc(kStack), .ss_size = kStack};
  sigaltstack(&stack, NULL);
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  struct sigevent none = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
  timer_t timer;
  timer_create(CLOCK_MONOTONIC, &none, &timer);
  struct itimerspec every = {{0, 200000}, {0, 200000}};
  timer_settime(timer, 0, &every, NULL);
  uint64_t sum = 0;
  while (g_signals < 500) {
    size_t page = next_random() % kPages;
    hl_hint(word_of(page), .size = 3 * kPage);
    sum += *word_of(page);
  }
  timer_delete(timer);
  uint64_t counted = 0;
  for (size_t page = 0; page < kPages; ++page) {
    counted += word_of(page)[1];
    word_of(page)[1] = 0;
  }
  printf("signals: each counted once: %d\n", counted == (uint64_t)g_signals && sum != 0);
}

static void* cancelled(void* argument) {
  for (;;) {
    hl_read(word_of(next_random() % kPages));
    pthread_testcancel();
  }
  return argument;
}

static void cancellation(void) {
  for (int i = 0; i < 50; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, cancelled, NULL);
    usleep(500);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
  }
  printf("cancellation: wrong %zu\n", wrong_pages(2));
}

// A thread whose stack is far memory: its hints must not take it from under itself.
static void far_stack(void) {
  enum { kBytes = 64 * kPage };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, take(64), kBytes);
  pthread_t thread;
  void* sum = NULL;
  pthread_create(&thread, &attributes, hint_and_count, (void*)9);
  pthread_join(thread, &sum);
  printf("far stack: %llu\n", (unsigned long long)(uintptr_t)sum);
}

static void forks(void) {
  pthread_t beside;
  pthread_create(&beside, NULL, hint_and_count, (void*)5);
  for (int i = 0; i < 8; ++i) {
    pid_t child = fork();
    if (child == 0) {
      size_t wrong = wrong_pages(2);
      for (size_t page = 0; page < kPages; page += 3) {
        hl_write(word_of(page));
        word_of(page)[0] = 0;
      }
      _exit(wrong == 0 ? 5 : 6);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
  }
  pthread_join(beside, NULL);
  printf("after forks: wrong %zu\n", wrong_pages(2));
}

static void pins(void) {
  size_t bytes = 64 * kPage;
  printf("pin %d\n", hl_pin(g_memory + 5, bytes));
  printf("pin again %d\n", hl_pin(g_memory + 5, bytes));
  random_reads();
  printf("unpin %d %d\n", hl_unpin(g_memory + 5, bytes), hl_unpin(g_memory + 5, bytes));
  int local = 0;
  printf("pin on the stack %d %d\n", hl_pin(&local, sizeof local), hl_unpin(&local, sizeof local));
}

static void discards(void) {
  unsigned char* memory = take(256);
  memset(memory, 7, 256 * kPage);
  random_reads();
  printf("discard %d\n", hl_discard(memory + 1, 255 * kPage));
  size_t neither = 0;
  for (size_t page = 1; page < 255; ++page) neither += memory[page * kPage] != 7 && memory[page * kPage] != 0;
  printf("edges %d %d, inside neither old nor zero: %zu\n", memory[0], memory[255 * kPage + 5], neither);
  munmap(memory, 256 * kPage);
}

static void at_exit(void) { hl_hint(g_memory, .size = 100 * kPage); }

int main(void) {
  g_memory = take(kPages);
  fill();
  random_reads();
  every_form();
  bad_addresses();
  threads();
  signals();
  cancellation();
  far_stack();
  forks();
  pins();
  discards();
  printf("at the end: wrong %zu\n", wrong_pages(2));
  atexit(at_exit);
  return 0;
}
