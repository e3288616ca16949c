// What few programs do to their memory, on far memory as natively: names for parts of it, advice of every kind,
// files and code in the middle of it, and reading it by process_vm_readv.
#include "far_bytes.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static uint64_t word_of(size_t page) { return (page + 1) * 0x9e3779b97f4a7c15u; }

// As new_bytes() made them.
static void write_again(char* far, size_t first, size_t count) {
  memset(far + first * PAGE, 0, count * PAGE);
  for (size_t i = first; i < first + count; ++i) *(uint64_t*)(far + i * PAGE) = word_of(i);
}

static void push_out(void) { munmap(new_bytes(), PAGES * PAGE); }

static sigjmp_buf after_touch;
static volatile int signal_got;
static void on_fault(int number, siginfo_t* info, void* context) {
  (void)context;
  signal_got = number * 1000 + info->si_code;
  siglongjmp(after_touch, 1);
}
// What came of it: 0, or the signal's number and code.
static int touch(volatile char* at, int writes) {
  signal_got = 0;
  if (sigsetjmp(after_touch, 1) == 0) writes ? (void)(*at = 1) : (void)*at;
  return signal_got;
}

static void names(char* far) {
  show("a name", prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, far, PAGES * PAGE, "the program's"));
  show("of a part", prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, far + 64 * PAGE, PAGE, "a part"));
  count_right("named", far);
}

static void advice(char* far) {
  static const int kinds[] = {MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_COLD,      MADV_PAGEOUT,
                              MADV_HUGEPAGE,      MADV_NOHUGEPAGE,     MADV_MERGEABLE, MADV_UNMERGEABLE,
                              MADV_DONTDUMP,      MADV_DODUMP,         MADV_WILLNEED,  MADV_NORMAL,
                              MADV_RANDOM,        MADV_SEQUENTIAL};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    char text[32];
    snprintf(text, sizeof text, "advice %d", kinds[i]);
    show(text, madvise(far, PAGES * PAGE, kinds[i]));
  }
  madvise(far, PAGES * PAGE, 25);  // MADV_COLLAPSE: whether there is a huge page is the kernel's affair
  count_right("advised", far);
  show("remap_file_pages", syscall(SYS_remap_file_pages, far, PAGE, 0, 0, 0));
  show("PROT_GROWSDOWN", mprotect(far, PAGE, PROT_READ | PROT_GROWSDOWN));
  show("PROT_GROWSUP", mprotect(far, PAGE, PROT_READ | PROT_GROWSUP));
  show("PROT_SEM", mprotect(far, PAGE, PROT_READ | PROT_WRITE | 8));
}

static void others_within(char* far) {
  enum { kFirst = 100, kCount = 64 };
  const int file = memfd_create("odd", 0);
  CHECK(file >= 0 && ftruncate(file, kCount * PAGE) == 0);
  for (size_t i = 0; i < kCount; ++i) CHECK(pwrite(file, &i, sizeof i, (off_t)(i * PAGE)) == sizeof i);
  char* at = mmap(far + kFirst * PAGE, kCount * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0);
  CHECK(at == far + kFirst * PAGE);
  for (size_t i = 0; i < kCount; ++i) *(size_t*)(at + i * PAGE) += 9;
  push_out();
  size_t right = 0, value;
  for (size_t i = 0; i < kCount; ++i)
    right += pread(file, &value, sizeof value, (off_t)(i * PAGE)) == sizeof value && value == i &&
             *(size_t*)(at + i * PAGE) == i + 9;
  printf("private pages of a file: %zu\n", right);
  CHECK(ftruncate(file, 0) == 0);
  printf("beyond its end: %d\n", touch(at, 0));
  CHECK(mmap(at, kCount * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) == at);
  write_again(far, kFirst, kCount);
  count_right("anonymous again", far);
  close(file);
}

static void code(char* far) {
  static const unsigned char returns_42[] = {0xb8, 42, 0, 0, 0, 0xc3};
  char* at = far + 400 * PAGE;
  memcpy(at + 64, returns_42, sizeof returns_42);
  show("code", mprotect(at, PAGE, PROT_READ | PROT_EXEC));
  push_out();
  int (*function)(void);
  void* start = at + 64;
  memcpy(&function, &start, sizeof function);
  printf("it returns %d\n", function());
  CHECK(mprotect(at, PAGE, PROT_READ | PROT_WRITE) == 0);
  write_again(far, 400, 1);
}

static void by_the_kernel(char* far) {
  enum { kBytes = 1 << 20 };
  char* buffer = malloc(kBytes);
  struct iovec here = {buffer, kBytes}, there = {far + PAGE, kBytes};
  show("process_vm_readv of itself", process_vm_readv(getpid(), &here, 1, &there, 1, 0));
  printf("equal: %d\n", memcmp(buffer, far + PAGE, kBytes) == 0);
  there.iov_base = far + 2 * PAGE;
  show("process_vm_writev of itself", process_vm_writev(getpid(), &here, 1, &there, 1, 0));
  printf("equal: %d\n", memcmp(buffer, far + 2 * PAGE, kBytes) == 0);
  write_again(far, 2, kBytes / PAGE);
  show("getrandom", getrandom(far, 40 * PAGE, 0));
  write_again(far, 0, 40);
  count_right("after the kernel", far);
  free(buffer);
}

static void moved(char* far) {
  enum { kFirst = 500, kCount = 32 };
  char* to = mremap(far + kFirst * PAGE, kCount * PAGE, kCount * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
  CHECK(to != MAP_FAILED);
  size_t right = 0;
  for (size_t i = kFirst; i < kFirst + kCount; ++i)
    right += *(uint64_t*)(to + (i - kFirst) * PAGE) == word_of(i) && *(uint64_t*)(far + i * PAGE) == 0;
  printf("moved: %zu\n", right);
  write_again(far, kFirst, kCount);
}

int main(void) {
  check_preloaded();
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
  char* far = new_bytes();
  names(far);
  advice(far);
  others_within(far);
  code(far);
  by_the_kernel(far);
  moved(far);
  count_right("at the end", far);
  return 0;
}
