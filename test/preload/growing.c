// MAP_GROWSDOWN: grows as it is touched below where it lies outside far memory; put into it, it stays as it is, and
// harms nothing around it.
#include "report.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { kPage = 4096, kGrowth = 300 };
#define MIB ((size_t)1 << 20)

static int await(pid_t child) {
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void grows(void) {
  // Addresses that the runtime leaves to the kernel, with room below for the gap that growing needs.
  char* room = mmap(NULL, 8 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  CHECK(room != MAP_FAILED && munmap(room, 8 * MIB) == 0);
  char* top = room + 7 * MIB;
  char* mapped = mmap(top, 2 * kPage, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE, -1, 0);
  CHECK(mapped == top);
  int right = 1;
  for (int page = 0; page < kGrowth; ++page) top[-(page * kPage) + 8] = (char)page;
  for (int page = 0; page < kGrowth; ++page)
    right &= top[-(page * kPage) + 8] == (char)page && top[-(page * kPage)] == 0;
  printf("grew, right %d\n", right);
  printf("protected as it grew %d\n", mprotect(top, kPage, PROT_READ | PROT_GROWSDOWN));
  pid_t child = fork();
  if (child == 0) _exit(top[-(7 * kPage) + 8] == 7 ? 3 : 4);
  printf("in a child %d\n", await(child));
  CHECK(munmap(top - kGrowth * kPage, (kGrowth + 2) * kPage) == 0);
}

static void put_into_far_memory(void) {
  char* memory = mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  for (size_t at = 0; at < 8 * MIB; at += kPage) memory[at] = (char)(at / kPage % 127);
  char* middle = memory + 4 * MIB;
  CHECK(munmap(memory + 2 * MIB, 3 * MIB) == 0);
  char* mapped =
      mmap(middle, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, -1, 0);
  CHECK(mapped == middle);
  memset(mapped, 9, 4 * kPage);
  printf("put at its place, right %d\n", mapped[4 * kPage - 1] == 9);
  pid_t child = fork();
  if (child == 0) {
    ((volatile char*)mapped)[-kPage] = 1;
    _exit(mapped[-kPage] == 1 && mapped[-kPage + 1] == 0 && mapped[0] == 9 ? 0 : 1);
  }
  int status = await(child);
  printf("below it grows or faults %d\n", status == 0 || status == 1000 + SIGSEGV);
  CHECK(munmap(mapped, 4 * kPage) == 0);
  int wrong = 0;
  for (size_t at = 0; at < 8 * MIB; at += kPage)
    if (at < 2 * MIB || at >= 5 * MIB) wrong += memory[at] != (char)(at / kPage % 127);
  printf("around it wrong %d\n", wrong);
  CHECK(munmap(memory, 8 * MIB) == 0);
}

int main(void) {
  check_preloaded();
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (int round = 0; round < 3; ++round) {
    grows();
    put_into_far_memory();
  }
  return 0;
}
