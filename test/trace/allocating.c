/* A program whose memory is known: which place allocated what, and how often that is touched.
 *
 * allocating PAGES ROUNDS [fork]: memory of PAGES pages, a power of two, from each of three places: one large block
 * (table), a mapping (mapped), and a block that takes the addresses of one that was touched and freed before (former,
 * latter); and of small nodes of two kinds, whose allocations are sampled, 8 and 4 times as much (node, other). Then,
 * ROUNDS times, each page of all that is read once, in an order that read-ahead cannot follow. With `fork` a child
 * does the reading. Lines that allocate are marked: the test finds their numbers. With ALLOCATING_WAITS in its
 * environment it goes on from `table`, which is beyond the budget, only when paging has begun, however long the
 * runtime has to wait for a CPU. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, NODE = 112, OTHER = 200 };

/* Of a power of two: after 0, each of the others once, in an order that looks random. */
static size_t after(size_t at, size_t most) { return (at * 1664525 + 1013904223) % most; }

static uint64_t read_block(const char* block, size_t pages) {
  uint64_t sum = 0;
  for (size_t i = 0, at = 0; i < pages; ++i, at = after(at, pages))
    sum += *(volatile const uint64_t*)(block + at * PAGE + 64);
  return sum;
}

/* One of each page's. */
static uint64_t read_nodes(char** nodes, size_t count, size_t pages) {
  uint64_t sum = 0;
  for (size_t i = 0, at = 0; i < pages; ++i, at = after(at, pages))
    sum += *(volatile uint64_t*)nodes[at * count / pages];
  return sum;
}

__attribute__((noinline)) static char* new_node(void) {
  char* node = malloc(NODE); /* MARK node */
  return memset(node, 1, NODE);
}

__attribute__((noinline)) static char* new_other(void) {
  char* other = calloc(1, OTHER); /* MARK other */
  return memset(other, 2, OTHER);
}

/* Whether missing pages of the mapping with this address are asked of a userfaultfd: its flag um. */
static int is_paged(const char* address) {
  FILE* maps = fopen("/proc/self/smaps", "r");
  char line[512];
  int here = 0, paged = 0;
  while (maps != NULL && !paged && fgets(line, sizeof line, maps) != NULL) {
    unsigned long first, end;
    if (sscanf(line, "%lx-%lx ", &first, &end) == 2) here = first <= (uintptr_t)address && (uintptr_t)address < end;
    paged = here && strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " um") != NULL;
  }
  if (maps != NULL) fclose(maps);
  return paged;
}

static void wait_for_paging(const char* address) {
  if (getenv("ALLOCATING_WAITS") == NULL) return;
  while (!is_paged(address)) usleep(1000);
}

int main(int count, char** arguments) {
  size_t pages = count > 1 ? strtoul(arguments[1], NULL, 10) : 4096;
  size_t rounds = count > 2 ? strtoul(arguments[2], NULL, 10) : 1;
  uint64_t sum = 0;
  char* former = malloc(pages * PAGE); /* MARK former */
  memset(former, 3, pages * PAGE);
  free(former);
  char* latter = malloc(pages * PAGE); /* MARK latter */
  memset(latter, 4, pages * PAGE);
  char* table = malloc(PAGE);
  table = realloc(table, pages * PAGE); /* MARK table */
  memset(table, 5, pages * PAGE);
  wait_for_paging(table);
  char* mapped =
      mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* MARK mapped */
  memset(mapped, 6, pages * PAGE);
  size_t nodes = 8 * pages * PAGE / NODE, others = 4 * pages * PAGE / OTHER;
  char** node = malloc(nodes * sizeof *node);
  char** other = malloc(others * sizeof *other);
  for (size_t i = 0; i < nodes; ++i) {
    node[i] = new_node();
    if (i < others) other[i] = new_other();
  }
  pid_t child = count > 3 ? fork() : 0;
  for (size_t round = 0; child == 0 && round < rounds; ++round) {
    sum += read_block(latter, pages) + read_block(table, pages) + read_block(mapped, pages);
    sum += read_nodes(node, nodes, 8 * pages) + read_nodes(other, others, 4 * pages);
  }
  if (child == 0) printf("%llu\n", (unsigned long long)sum);
  int status = 0;
  if (child != 0 && (waitpid(child, &status, 0) != child || status != 0)) return 4;
  munmap(mapped, pages * PAGE);
  return 0;
}
