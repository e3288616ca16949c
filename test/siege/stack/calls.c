// The calls themselves, what has to be there before each, and what is looked at after it.
#include "calls.h"

#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <printf.h>
#include <pthread.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <utmp.h>

#include <hinterland/hint.h>

#include "../../preload/report.h"

enum { kBytes = 256 << 10, kPage = 4096, kHigh = 700 };

int g_forked;
static char *g_bytes, *g_local, *g_made;
static size_t* g_of_child;  // shared with the children
static void* g_block;
static pthread_t g_thread;
static thrd_t g_other;
static pthread_mutexattr_t g_robust;
static struct stat g_status;
static struct sigaction g_action;
static unsigned char g_core[kBytes / kPage];
static int g_segment, g_process, g_pair[2], g_file;
static struct iovec g_range;
static FILE* g_stream;
static locale_t g_locale;
static char g_child_stack[64 << 10] __attribute__((aligned(16)));
static char *const kNoWords[] = {"none", NULL}, *const kNoVariables[] = {NULL};

static char* fresh(size_t bytes, int flags) {
  char* made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  CHECK(made != MAP_FAILED);
  return made;
}

static void fill(void) {
  for (int at = 0; at < kBytes; at += kPage) g_bytes[at] = (char)(at / kPage + 1);
}
static void new_bytes(void) {
  g_bytes = fresh(kBytes, 0);
  fill();
}
static void new_local(void) { g_local = fresh(kBytes, MAP_STACK); }
static size_t drop_bytes(long result) {
  CHECK(result == 0 && munmap(g_bytes, kBytes) == 0);
  return 0;
}
static size_t drop_made(long result) {
  g_made = (char*)result;
  CHECK(g_made != MAP_FAILED && munmap(g_made, kBytes) == 0);
  return 0;
}
static size_t must_be_zero(long result) {
  CHECK(result == 0);
  return 0;
}

// --- memory
// ---------------------------------------------------------------------------------------------------------
#define CALL_RETURNING(name, expression) \
  static long name(void) { return (long)(expression); }
#define PLAIN (PROT_READ | PROT_WRITE)
#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)

CALL_RETURNING(map, mmap(NULL, kBytes, PLAIN, ANONYMOUS, -1, 0))
CALL_RETURNING(map64, mmap64(NULL, kBytes, PLAIN, ANONYMOUS, -1, 0))
CALL_RETURNING(map_over, mmap(g_bytes, kBytes, PLAIN, ANONYMOUS | MAP_FIXED, -1, 0) != g_bytes)
CALL_RETURNING(map_file_over, mmap(g_bytes, kPage, PROT_READ, MAP_PRIVATE | MAP_FIXED, g_file, 0) != g_bytes)
CALL_RETURNING(map_file, mmap(NULL, kBytes, PROT_READ, MAP_PRIVATE, g_file, 0))
CALL_RETURNING(map_local, mmap(NULL, kBytes, PLAIN, ANONYMOUS | MAP_STACK, -1, 0))
CALL_RETURNING(unmap, munmap(g_bytes, kBytes))
CALL_RETURNING(unmap_local, munmap(g_local, kBytes))
CALL_RETURNING(protect, mprotect(g_bytes, kBytes, PROT_READ))
CALL_RETURNING(protect_by_key, pkey_mprotect(g_bytes, kBytes, PROT_READ, -1))
CALL_RETURNING(not_needed, madvise(g_bytes, kBytes, MADV_DONTNEED))
CALL_RETURNING(needed, madvise(g_bytes, kBytes, MADV_WILLNEED))
CALL_RETURNING(kept_from_children, madvise(g_bytes, kBytes, MADV_DONTFORK))
CALL_RETURNING(needed_posix, posix_madvise(g_bytes, kBytes, POSIX_MADV_WILLNEED))
CALL_RETURNING(not_needed_by_process, process_madvise(g_process, &g_range, 1, MADV_DONTNEED, 0))
CALL_RETURNING(resident, mincore(g_bytes, kBytes, g_core))
CALL_RETURNING(move, mremap(g_bytes, kBytes, 2 * kBytes, MREMAP_MAYMOVE))
CALL_RETURNING(lock, mlock(g_bytes, kPage))
CALL_RETURNING(lock2, mlock2(g_bytes, kPage, MLOCK_ONFAULT))
CALL_RETURNING(unlock, munlock(g_bytes, kPage))
CALL_RETURNING(unlock_all, munlockall())
CALL_RETURNING(synchronise, msync(g_bytes, kBytes, MS_ASYNC))
CALL_RETURNING(attach, shmat(g_segment, g_bytes, SHM_REMAP) != g_bytes)
CALL_RETURNING(raw_unmap, syscall(SYS_munmap, g_bytes, kBytes))
CALL_RETURNING(raw_not_needed, syscall(SYS_madvise, g_bytes, kBytes, MADV_DONTNEED))
CALL_RETURNING(raw_map, syscall(SYS_mmap, NULL, kBytes, PLAIN, ANONYMOUS, -1, 0))
CALL_RETURNING(raw_nothing, syscall(SYS_getppid) <= 0)

static void new_range(void) {
  new_bytes();
  g_range = (struct iovec){g_bytes, kBytes};
}
static size_t drop_range(long result) { return drop_bytes(result - kBytes); }
static size_t drop_moved(long result) {
  g_made = (char*)result;
  CHECK(g_made != MAP_FAILED && g_made[kPage] == 2 && munmap(g_made, 2 * kBytes) == 0);
  return 0;
}
static void new_locked(void) {
  new_bytes();
  CHECK(mlock(g_bytes, kPage) == 0);
}
static size_t drop_locked(long result) {
  CHECK(result == 0 && munlock(g_bytes, kPage) == 0);
  return drop_bytes(0);
}

// --- processes and threads
// -------------------------------------------------------------------------------------------
static long sum(void) {
  long found = 0;
  for (int at = 0; at < kBytes; at += kPage) found += g_bytes[at];
  return found;
}
// On a stack with room, in a child that a measured call made. Its far memory must be there.
_Noreturn void end_child(size_t deepest) {
  *g_of_child = deepest;
  long expected = 0;
  for (int page = 0; page < kBytes / kPage; ++page) expected += (char)(page + 1);
  _exit(sum() == expected ? 7 : 8);
}
static size_t wait_for_child(long child) {
  int status;
  CHECK(child > 0 && waitpid((pid_t)child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
  drop_bytes(0);
  return *g_of_child;
}
static long as_parent_or_child(long made) {
  if (made == 0) g_forked = 1;
  return made;
}
static int run_child(void* unused) {
  (void)unused;
  end_child(0);
}
CALL_RETURNING(make_child, as_parent_or_child(fork()))
CALL_RETURNING(make_child_plainly, as_parent_or_child(_Fork()))
CALL_RETURNING(make_child_raw, as_parent_or_child(syscall(SYS_fork)))
CALL_RETURNING(make_child_by_clone, as_parent_or_child(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)))
CALL_RETURNING(make_child_elsewhere, clone(run_child, g_child_stack + sizeof g_child_stack, SIGCHLD, NULL))
CALL_RETURNING(make_terminal_child, as_parent_or_child(forkpty(&g_pair[0], NULL, NULL, NULL)))
static size_t wait_for_terminal_child(long child) {
  size_t of_child = wait_for_child(child);
  close(g_pair[0]);
  return of_child;
}

static void* run_thread(void* argument) { return argument; }
static int run_other_thread(void* argument) { return argument != NULL; }
CALL_RETURNING(make_thread, pthread_create(&g_thread, NULL, run_thread, NULL))
static size_t join(long result) {
  CHECK(result == 0 && pthread_join(g_thread, NULL) == 0);
  return 0;
}
CALL_RETURNING(make_other_thread, thrd_create(&g_other, run_other_thread, NULL))
static size_t join_other(long result) {
  CHECK(result == thrd_success && thrd_join(g_other, NULL) == thrd_success);
  return 0;
}
CALL_RETURNING(make_mutex, pthread_mutex_init((pthread_mutex_t*)g_bytes, &g_robust))
CALL_RETURNING(destroy_mutex, pthread_mutex_destroy((pthread_mutex_t*)g_bytes))
static void new_mutex(void) {
  new_bytes();
  CHECK(pthread_mutex_init((pthread_mutex_t*)g_bytes, &g_robust) == 0);
}
static size_t drop_mutex(long result) {
  CHECK(result == 0 && pthread_mutex_destroy((pthread_mutex_t*)g_bytes) == 0);
  return drop_bytes(0);
}
static void nothing(void) {}
CALL_RETURNING(add_handler, pthread_atfork(NULL, NULL, nothing))
CALL_RETURNING(execute_nothing, execve("/there/is/none", kNoWords, kNoVariables) == -1 ? errno : 0)
CALL_RETURNING(execute_no_list, execl("/there/is/none", "none", "of", "them", (char*)NULL) == -1 ? errno : 0)

// --- descriptors
// -----------------------------------------------------------------------------------------------------
CALL_RETURNING(close_none, close(kHigh) == -1 ? errno : 0)
CALL_RETURNING(duplicate, dup(0))
CALL_RETURNING(duplicate_to, dup2(0, kHigh))
CALL_RETURNING(duplicate_to_with, dup3(0, kHigh, O_CLOEXEC))
CALL_RETURNING(close_some, close_range(kHigh, kHigh + 5, 0))
CALL_RETURNING(close_from, (closefrom(1 << 20), 0))
CALL_RETURNING(control, fcntl(0, F_GETFD))
CALL_RETURNING(status, fstat(0, &g_status))
CALL_RETURNING(stream_of, g_stream = fdopen(g_pair[0], "r"))
CALL_RETURNING(raw_close_none, syscall(SYS_close, kHigh) == -1 ? errno : 0)
static size_t close_made(long descriptor) {
  CHECK(descriptor > 0 && close((int)descriptor) == 0);
  return 0;
}
static void new_pair(void) { CHECK(pipe(g_pair) == 0); }
static size_t close_pair(long stream) {
  CHECK(stream != 0 && fclose(g_stream) == 0 && close(g_pair[1]) == 0);
  return 0;
}

// --- signals, locales, printf
// ----------------------------------------------------------------------------------------
static void on_signal(int number) { (void)number; }
CALL_RETURNING(act, sigaction(SIGUSR2, &g_action, NULL))
CALL_RETURNING(act_on_fault, sigaction(SIGSEGV, &g_action, NULL))
CALL_RETURNING(act_on_bus, sigaction(SIGBUS, NULL, &g_action))
CALL_RETURNING(act_simply, signal(SIGUSR2, on_signal) == SIG_ERR)
static size_t act_by_default(long result) {
  struct sigaction by_default = {.sa_handler = SIG_DFL};
  CHECK(result == 0 && sigaction(SIGUSR2, &by_default, NULL) == 0 && sigaction(SIGSEGV, &by_default, NULL) == 0);
  return 0;
}
CALL_RETURNING(ask_locale, setlocale(LC_ALL, NULL) == NULL)
CALL_RETURNING(make_locale, g_locale = newlocale(LC_ALL_MASK, "C", NULL))
CALL_RETURNING(copy_locale, g_locale = duplocale(g_locale))

// --- the heap
// --------------------------------------------------------------------------------------------------------
#define KEEP(expression) ((g_block = (expression)) == NULL)
CALL_RETURNING(allocate, KEEP(malloc(100)))
CALL_RETURNING(allocate_more, KEEP(malloc(100 << 10)))
CALL_RETURNING(allocate_much, KEEP(malloc(9 << 20)))
CALL_RETURNING(allocate_zeros, KEEP(calloc(1000, 100)))
CALL_RETURNING(allocate_aligned, KEEP(memalign(8192, 100 << 10)))
CALL_RETURNING(allocate_larger, KEEP(realloc(g_block, 1 << 20)))
CALL_RETURNING(release, (free(g_block), 0))
CALL_RETURNING(usable, malloc_usable_size(g_block) < 100)
static void new_block(void) { CHECK(!KEEP(malloc(100))); }
static void new_large_block(void) {
  CHECK(!KEEP(malloc(5 << 20)));
  memset(g_block, 1, 5 << 20);
}
static size_t drop_block(long result) {
  CHECK(result == 0);
  free(g_block);
  return 0;
}

// --- hints, of pages that others' memory has pushed out
// --------------------------------------------------------------------------------------------------------
enum { kManyPages = 8192 };
static char* g_many;
static size_t g_next;
static void next_page(void) {
  if (g_many == NULL) {
    g_many = mmap(NULL, kManyPages * kPage, PLAIN, ANONYMOUS, -1, 0);
    CHECK(g_many != MAP_FAILED);
    for (size_t i = 0; i < kManyPages; ++i) g_many[i * kPage] = 1;
  }
  g_next = (g_next + 1237) % (kManyPages - 16);
  g_bytes = g_many + g_next * kPage;
}
static size_t still_there(long result) {
  CHECK(result == 0 && *g_bytes == 1);
  return 0;
}
static size_t filled_again(long result) {
  CHECK(result == 0);
  *g_bytes = 1;
  return 0;
}
CALL_RETURNING(hint_read, (hl_read(g_bytes), 0))
CALL_RETURNING(hint_write, (hl_write(g_bytes), 0))
CALL_RETURNING(hint_in_order, (hl_seq_read(g_bytes), 0))
CALL_RETURNING(hint_prefetch, (hl_prefetch(g_bytes, 8 * kPage), 0))
CALL_RETURNING(hint_cold, (hl_cold(g_bytes, kPage), 0))
CALL_RETURNING(hint_pin, hl_pin(g_bytes, kPage) & 0)
CALL_RETURNING(hint_unpin, hl_unpin(g_bytes, kPage) & 0)
CALL_RETURNING(hint_discard, hl_discard(g_bytes, kPage) & 0)

// --- what the kernel fills in, on pages that others' memory has pushed out
// --------------------------------------------------------------------------------------------------------
static void next_range(void) {
  next_page();
  g_range = (struct iovec){g_bytes, kPage};
}
CALL_RETURNING(read_there, pread(g_file, g_bytes, kPage, 0) != kPage)
CALL_RETURNING(read_parts_there, preadv(g_file, &g_range, 1, 0) != kPage)
CALL_RETURNING(raw_read_there, syscall(SYS_pread64, g_file, g_bytes, kPage, 0) != kPage)
CALL_RETURNING(raw_read_parts_there, syscall(SYS_preadv, g_file, &g_range, 1, 0, 0) != kPage)

// --- masks
// --------------------------------------------------------------------------------------------------------
static sigset_t g_none, g_before;
CALL_RETURNING(mask, pthread_sigmask(SIG_BLOCK, &g_none, &g_before))
CALL_RETURNING(mask_of_process, sigprocmask(SIG_BLOCK, &g_none, NULL))
CALL_RETURNING(mask_raw, syscall(SYS_rt_sigprocmask, SIG_BLOCK, &g_none, NULL, 8))

const struct call kCalls[] = {
    {"hl_read", next_page, hint_read, still_there, 0},
    {"hl_write", next_page, hint_write, still_there, 0},
    {"hl_seq_read", next_page, hint_in_order, still_there, 0},
    {"hl_prefetch", next_page, hint_prefetch, still_there, 0},
    {"hl_cold", next_page, hint_cold, still_there, 0},
    {"hl_pin", next_page, hint_pin, still_there, 0},
    {"hl_unpin", NULL, hint_unpin, still_there, 0},
    {"hl_discard", next_page, hint_discard, filled_again, 0},
    {"pread", next_range, read_there, filled_again, 0},
    {"preadv", next_range, read_parts_there, filled_again, 0},
    {"syscall/pread64", next_range, raw_read_there, filled_again, 0},
    {"syscall/preadv", next_range, raw_read_parts_there, filled_again, 0},
    {"pthread_sigmask", NULL, mask, must_be_zero, 0},
    {"sigprocmask", NULL, mask_of_process, must_be_zero, 0},
    {"syscall/sigprocmask", NULL, mask_raw, must_be_zero, 0},
    {"mmap", NULL, map, drop_made, 0},
    {"mmap64", NULL, map64, drop_made, 0},
    {"mmap/fixed", new_bytes, map_over, drop_bytes, 0},
    {"mmap/file-fixed", new_bytes, map_file_over, drop_bytes, 0},
    {"mmap/file", NULL, map_file, drop_made, 0},
    {"mmap/local", NULL, map_local, drop_made, 0},
    {"munmap", new_bytes, unmap, must_be_zero, 0},
    {"munmap/local", new_local, unmap_local, must_be_zero, 0},
    {"mprotect", new_bytes, protect, drop_bytes, 0},
    {"pkey_mprotect", new_bytes, protect_by_key, drop_bytes, 0},
    {"madvise/dontneed", new_bytes, not_needed, drop_bytes, 0},
    {"madvise/willneed", new_bytes, needed, drop_bytes, 0},
    {"madvise/dontfork", new_bytes, kept_from_children, drop_bytes, 0},
    {"posix_madvise", new_bytes, needed_posix, drop_bytes, 0},
    {"process_madvise", new_range, not_needed_by_process, drop_range, 0},
    {"mincore", new_bytes, resident, drop_bytes, 0},
    {"mremap", new_bytes, move, drop_moved, 0},
    {"mlock", new_bytes, lock, drop_locked, 0},
    {"mlock2", new_bytes, lock2, drop_locked, 0},
    {"munlock", new_locked, unlock, drop_bytes, 0},
    {"munlockall", new_locked, unlock_all, drop_bytes, 0},
    {"msync", new_bytes, synchronise, drop_bytes, 0},
    {"shmat", new_bytes, attach, drop_bytes, 0},
    {"syscall/munmap", new_bytes, raw_unmap, must_be_zero, 0},
    {"syscall/madvise", new_bytes, raw_not_needed, drop_bytes, 0},
    {"syscall/mmap", NULL, raw_map, drop_made, 0},
    {"syscall/getppid", NULL, raw_nothing, must_be_zero, 0},
    {"fork", new_bytes, make_child, wait_for_child, 0},
    {"_Fork", new_bytes, make_child_plainly, wait_for_child, 0},
    {"syscall/fork", new_bytes, make_child_raw, wait_for_child, 0},
    {"syscall/clone", new_bytes, make_child_by_clone, wait_for_child, 0},
    {"clone", new_bytes, make_child_elsewhere, wait_for_child, 0},
    {"forkpty", new_bytes, make_terminal_child, wait_for_terminal_child, 0},
    {"pthread_create", NULL, make_thread, join, 0},
    {"thrd_create", NULL, make_other_thread, join_other, 0},
    {"pthread_mutex_init", new_bytes, make_mutex, drop_mutex, 0},
    {"pthread_mutex_destroy", new_mutex, destroy_mutex, drop_bytes, 0},
    {"pthread_atfork", NULL, add_handler, must_be_zero, 0},
    {"execve", NULL, execute_nothing, NULL, 1},
    {"execl", NULL, execute_no_list, NULL, 1},
    {"close", NULL, close_none, NULL, 1},
    {"syscall/close", NULL, raw_close_none, NULL, 1},
    {"dup", NULL, duplicate, close_made, 0},
    {"dup2", NULL, duplicate_to, close_made, 0},
    {"dup3", NULL, duplicate_to_with, close_made, 0},
    {"close_range", NULL, close_some, must_be_zero, 0},
    {"closefrom", NULL, close_from, must_be_zero, 0},
    {"fcntl", NULL, control, must_be_zero, 0},
    {"fstat", NULL, status, must_be_zero, 0},
    {"fdopen", new_pair, stream_of, close_pair, 0},
    {"sigaction", NULL, act, act_by_default, 0},
    {"sigaction/segv", NULL, act_on_fault, act_by_default, 0},
    {"sigaction/bus", NULL, act_on_bus, act_by_default, 0},
    {"signal", NULL, act_simply, act_by_default, 0},
    {"setlocale", NULL, ask_locale, must_be_zero, 0},
    {"newlocale", NULL, make_locale, NULL, 0},
    {"duplocale", NULL, copy_locale, NULL, 0},
    {"malloc", NULL, allocate, drop_block, 0},
    {"malloc/100K", NULL, allocate_more, drop_block, 0},
    {"malloc/9M", NULL, allocate_much, drop_block, 0},
    {"calloc", NULL, allocate_zeros, drop_block, 0},
    {"memalign", NULL, allocate_aligned, drop_block, 0},
    {"realloc", new_block, allocate_larger, drop_block, 0},
    {"free", new_block, release, must_be_zero, 0},
    {"free/5M", new_large_block, release, must_be_zero, 0},
    {"malloc_usable_size", new_block, usable, drop_block, 0},
    {0},
};

void prepare_calls(void) {
  g_of_child = mmap(NULL, kPage, PLAIN, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(g_of_child != MAP_FAILED);
  g_process = (int)syscall(SYS_pidfd_open, getpid(), 0);
  CHECK(g_process >= 0);
  g_segment = shmget(IPC_PRIVATE, kBytes, 0600);
  CHECK(g_segment >= 0);
  void* attached = shmat(g_segment, NULL, 0);  // a segment that nobody has goes with the last who had it
  CHECK(attached != (void*)-1 && shmctl(g_segment, IPC_RMID, NULL) == 0);
  g_file = open("/proc/self/exe", O_RDONLY);
  CHECK(g_file >= 0);
  CHECK(pthread_mutexattr_init(&g_robust) == 0 && pthread_mutexattr_setrobust(&g_robust, PTHREAD_MUTEX_ROBUST) == 0);
  g_action.sa_handler = on_signal;
}
