// Calls on a reservation of half a terabyte, as run-time systems with heaps of their own make them: what they cost
// follows what of it is used, and not how large it is.
#include "report.h"

#include <sys/mman.h>
#include <sys/wait.h>

static const size_t kReserved = (size_t)512 << 30, kUsed = (size_t)24 << 20, kPage = 4096;

static size_t resident_bytes(void) {
  size_t all = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL && fscanf(file, "%zu %zu", &all, &resident) == 2);
  fclose(file);
  return resident * kPage;
}

// So that the figure does not follow what the budget is.
static void say(const char* what, int result, size_t before) {
  size_t after = resident_bytes();
  printf("%s: %d, %s\n", what, result, after < before + ((size_t)64 << 20) ? "little memory" : "too much memory");
}

static unsigned char* reserve(void) {
  void* memory = mmap(NULL, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  return memory;
}

static size_t wrong_bytes(const unsigned char* memory, size_t size, unsigned char value) {
  size_t wrong = 0;
  for (size_t at = 0; at < size; at += kPage) wrong += memory[at] != value;
  return wrong;
}

// Two pieces of it, far apart, are used.
static void use(unsigned char* memory) {
  unsigned char* far_apart = memory + kReserved / 2;
  CHECK(mprotect(memory, kUsed, PROT_READ | PROT_WRITE) == 0);
  CHECK(mmap(far_apart, kUsed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == far_apart);
  memset(memory, 3, kUsed);
  memset(far_apart, 4, kUsed);
}

static void look(const char* what, const unsigned char* memory, unsigned char first, unsigned char second) {
  printf("%s: %zu and %zu are wrong\n", what, wrong_bytes(memory, kUsed, first),
         wrong_bytes(memory + kReserved / 2, kUsed, second));
}

static void advise(unsigned char* memory) {
  static const struct {
    const char* name;
    int advice;
  } kCalls[] = {{"MADV_DONTDUMP", MADV_DONTDUMP},
                {"MADV_DODUMP", MADV_DODUMP},
                {"MADV_HUGEPAGE", MADV_HUGEPAGE},
                {"MADV_NOHUGEPAGE", MADV_NOHUGEPAGE},
                {"MADV_DONTFORK", MADV_DONTFORK},
                {"MADV_DOFORK", MADV_DOFORK},
                {"MADV_WIPEONFORK", MADV_WIPEONFORK},
                {"MADV_KEEPONFORK", MADV_KEEPONFORK},
                {"MADV_SEQUENTIAL", MADV_SEQUENTIAL},
                {"MADV_WILLNEED", MADV_WILLNEED},
                {"MADV_COLD", MADV_COLD}};
  for (size_t i = 0; i < sizeof kCalls / sizeof kCalls[0]; ++i) {
    size_t before = resident_bytes();
    say(kCalls[i].name, madvise(memory, kReserved, kCalls[i].advice), before);
  }
  look("after advice", memory, 3, 4);
}

static void fork_with(unsigned char* memory) {
  pid_t child = fork();
  if (child == 0) _exit(wrong_bytes(memory, kUsed, 3) + wrong_bytes(memory + kReserved / 2, kUsed, 4) != 0);
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  printf("a child: %d\n", status);
}

int main(void) {
  check_preloaded();
  unsigned char* memory = reserve();
  use(memory);
  advise(memory);
  fork_with(memory);
  size_t before = resident_bytes();
  say("mlock on fault", mlock2(memory + kUsed, (size_t)1 << 20, MLOCK_ONFAULT) == 0, before);
  say("munlock", munlock(memory, kReserved), before);
  say("read only", mprotect(memory, kReserved, PROT_READ), before);
  look("read only", memory, 3, 4);
  say("writable", mprotect(memory, kUsed, PROT_READ | PROT_WRITE), before);
  unsigned char* moved = mremap(memory, kReserved, kReserved, MREMAP_MAYMOVE | MREMAP_FIXED, reserve());
  CHECK(moved != MAP_FAILED);
  say("moved", moved != memory, before);
  look("moved", moved, 3, 4);
  say("given back", madvise(moved, kReserved, MADV_DONTNEED), before);
  look("given back", moved, 0, 0);
  say("shrunk", mremap(moved, kReserved, kReserved / 4, 0) == moved, before);
  say("unmapped", munmap(moved, kReserved / 4), before);
  return 0;
}
