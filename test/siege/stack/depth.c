// Every interposed call on small stacks of every kind: an alternate signal stack, a coroutine's, a thread's, local
// and in far memory, while others use more memory than is local. Below each stack lies what is somebody else's:
// nobody may write there. Prints how many bytes of its stack each call used; depth.py says how many it may.
#include "calls.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/auxv.h>

#include "../../preload/report.h"
#include "measure.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

enum { kPage = 4096, kBelow = 128 << 10, kBusy = 24 << 20 };

enum way { kAlternate, kCoroutine, kFarCoroutine, kThread, kWays };
static const char* const kWayNames[] = {"alternate", "coroutine", "far-coroutine", "thread"};
// KiB of the stacks: these, or all that --sizes names.
static const size_t kSizes[] = {4, 8, 16, 32, 64, 1024};

static struct {
  const struct call* call;
  char* low;  // of what is painted
  long result;
  size_t deepest;
} g_now;

// A child ends here, on the small stack, with nothing below it.
static void measure_now(void) {
  g_now.result = measure(g_now.call->function, g_now.low, &g_now.deepest);
  if (!g_forked) return;
  CHECK(mprotect(g_now.low, kBelow, PROT_NONE) == 0);
  end_child(g_now.deepest);
}
static void on_signal(int number) {
  (void)number;
  measure_now();
}
static void on_coroutine(void* unused) {
  (void)unused;
  measure_now();
}
static void* on_thread(void* unused) {
  measure_now();
  return unused;
}

static char* stack_of(enum way way, size_t bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (way == kFarCoroutine ? 0 : MAP_STACK);
  char* made = mmap(NULL, kPage + kBelow + bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  CHECK(made != MAP_FAILED && mprotect(made, kPage, PROT_NONE) == 0);
  memset(made + kPage, 0x5a, kBelow);
  return made;
}

static void enter(enum way way, char* stack, size_t bytes) {
  if (way == kAlternate) {
    stack_t alternate = {.ss_sp = stack, .ss_size = bytes}, before;
    CHECK(sigaltstack(&alternate, &before) == 0 && raise(SIGUSR1) == 0 && sigaltstack(&before, NULL) == 0);
  } else if (way == kThread) {
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, stack, bytes) == 0);
    CHECK(pthread_create(&thread, &attributes, on_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(pthread_attr_destroy(&attributes) == 0);
  } else {
    call_on(stack + bytes, on_coroutine, NULL);
  }
}

// Of the native call too, where a kernel's frame or a thread's own block needs as much.
static int fits(enum way way, size_t bytes) {
  if (way == kAlternate) return bytes >= getauxval(AT_MINSIGSTKSZ) + 2048;
  return way != kThread || bytes >= 16 << 10;
}

static void try(const struct call* call, enum way way, size_t bytes) {
  char* made = stack_of(way, bytes);
  g_now.call = call;
  g_now.low = made + kPage;
  g_now.deepest = 0;
  if (call->before != NULL) call->before();
  g_forked = 0;
  enter(way, made + kPage + kBelow, bytes);
  // Natively all of these succeed, and so they must here.
  size_t of_child = call->after != NULL ? call->after(g_now.result) : 0;
  if (of_child > g_now.deepest) g_now.deepest = of_child;
  printf("%s %s %zu %ld %zu\n", call->name, kWayNames[way], bytes >> 10, call->shows_result ? g_now.result : 0,
         g_now.deepest);
  fflush(stdout);
  CHECK(munmap(made, kPage + kBelow + bytes) == 0);
}

static atomic_int g_enough;
static void* use_much(void* unused) {
  char* much = mmap(NULL, kBusy, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(much != MAP_FAILED);
  while (!atomic_load(&g_enough))
    for (size_t at = 0; at < kBusy && !atomic_load(&g_enough); at += kPage) ++much[at];
  return unused;
}

static void try_all(enum way way, size_t kibibytes) {
  for (const struct call* call = kCalls; call->name != NULL; ++call)
    if (fits(way, kibibytes << 10)) try(call, way, kibibytes << 10);
}

// depth [--sizes=FIRST-LAST/STEP] [WAY...]: all ways without any
int main(int count, char** words) {
  check_preloaded();
  alarm(150);
  setvbuf(stdout, NULL, _IOFBF, 1 << 16);
  prepare_calls();
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  pthread_t busy;
  CHECK(pthread_create(&busy, NULL, use_much, NULL) == 0);
  size_t first = 0, last = 0, step = 0;
  if (count > 1 && sscanf(words[1], "--sizes=%zu-%zu/%zu", &first, &last, &step) == 3) {
    CHECK(step > 0);
    --count, ++words;
  }
  for (enum way way = 0; way < kWays; ++way) {
    int wanted = count == 1;
    for (int i = 1; i < count; ++i) wanted |= strcmp(words[i], kWayNames[way]) == 0;
    for (size_t size = first; wanted && step > 0 && size <= last; size += step) try_all(way, size);
    for (size_t i = 0; wanted && step == 0 && i < sizeof kSizes / sizeof *kSizes; ++i) try_all(way, kSizes[i]);
  }
  atomic_store(&g_enough, 1);
  CHECK(pthread_join(busy, NULL) == 0);
  printf("ended\n");
  return 0;
}
