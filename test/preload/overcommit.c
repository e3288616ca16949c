// What is larger than memory, swap and far memory together is refused, as the kernel does (vm.overcommit_memory=0): a
// program that asks whether it can have so much must not be told yes and then be killed. What only reserves is
// granted.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

static void say(const char* what, const void* result) {
  printf("%-24s %s\n", what, result != NULL && result != MAP_FAILED ? "granted" : strerror(errno));
  errno = 0;
}

static void* mapped(size_t bytes, int protection, int more) {
  return mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | more, -1, 0);
}

// Compressed memory holds twice as much as there is: more than memory is granted there, and can be used.
static void beyond_memory(size_t memory) {
  const char* far = getenv("HINTERLAND_FAR");
  const int wanted = far != NULL && strncmp(far, "zmem:", 5) == 0;
  const size_t bytes = memory / 2 * 3;
  char* later = mapped(bytes, PROT_NONE, 0);
  if (mprotect(later, bytes, PROT_READ | PROT_WRITE) != 0) {
    munmap(later, bytes);
    later = NULL;
  }
  char* blocks[] = {malloc(bytes), mapped(bytes, PROT_READ | PROT_WRITE, 0), later};
  for (int i = 0; i < 3; ++i) {
    const int granted = blocks[i] != NULL && blocks[i] != MAP_FAILED;
    printf("beyond memory: %s\n", granted == wanted ? "as expected" : "NOT as expected");
    if (!granted) continue;
    blocks[i][0] = blocks[i][bytes / 2] = blocks[i][bytes - 1] = 5;
    if (blocks[i][0] + blocks[i][bytes / 2] + blocks[i][bytes - 1] + blocks[i][bytes / 3] != 15) puts("wrong bytes");
  }
}

int main(void) {
  FILE* file = fopen("/proc/sys/vm/overcommit_memory", "r");
  if (file == NULL || fgetc(file) != '0') return 77;  // the kernel grants all, or counts
  fclose(file);
  struct sysinfo info;
  if (sysinfo(&info) != 0) return 77;
  const size_t memory = (info.totalram + info.totalswap) * info.mem_unit / 4096 * 4096;
  const size_t too_much = 8 * memory, much = memory / 2;
  char* small = malloc(5000);
  memset(small, 7, 5000);

  beyond_memory(memory);
  say("malloc", malloc(too_much));
  say("calloc", calloc(too_much / 16, 16));
  say("aligned_alloc", aligned_alloc(1 << 21, too_much));
  say("realloc", realloc(small, too_much));
  printf("%d %d\n", small[0], small[4999]);  // as it was
  say("mmap", mapped(too_much, PROT_READ | PROT_WRITE, 0));
  char* some = mapped(1 << 20, PROT_READ | PROT_WRITE, 0);
  memset(some, 8, 1 << 20);
  say("mremap", mremap(some, 1 << 20, too_much, MREMAP_MAYMOVE));
  printf("%d %d\n", some[0], some[(1 << 20) - 1]);
  say("mmap, not to be counted", mapped(too_much, PROT_READ | PROT_WRITE, MAP_NORESERVE));
  say("mmap, without access", mapped(too_much, PROT_NONE, 0));
  say("mmap, read only", mapped(too_much, PROT_READ, 0));

  char* half = malloc(much);
  say("malloc of the half", half);
  half[much - 1] = 1;
  free(half);
  say("mmap of the half", mapped(much, PROT_READ | PROT_WRITE, 0));
  say("malloc of all but 5 %", malloc(memory / 20 * 19));
  return 0;
}
