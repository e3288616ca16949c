/* A program whose memory is known: which place allocated what, and how often that is touched.
 *
 * allocating PAGES ROUNDS [fork]: memory of PAGES pages altogether from each of five places: one large block (table),
 * a mapping (mapped), small nodes of two kinds (node, twice as many pages of them as of other), and a block that
 * takes the addresses of one that was touched and freed before (former, latter). Then ROUNDS times as many random
 * pages of each are read as it has. With `fork` a child does the reading. Lines that allocate are marked: the test
 * finds their numbers. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, NODE = 112, OTHER = 200 };

static size_t next(uint64_t* state, size_t most) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (*state >> 33) % most;
}

static uint64_t read_block(uint64_t* state, const char* block, size_t pages) {
  uint64_t sum = 0;
  for (size_t i = 0; i < pages; ++i) sum += *(volatile const uint64_t*)(block + next(state, pages) * PAGE + 64);
  return sum;
}

static uint64_t read_nodes(uint64_t* state, char** nodes, size_t count, size_t reads) {
  uint64_t sum = 0;
  for (size_t i = 0; i < reads; ++i) sum += *(volatile uint64_t*)nodes[next(state, count)];
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

int main(int count, char** arguments) {
  size_t pages = count > 1 ? strtoul(arguments[1], NULL, 10) : 4096;
  size_t rounds = count > 2 ? strtoul(arguments[2], NULL, 10) : 1;
  uint64_t state = 42, sum = 0;
  char* former = malloc(pages * PAGE); /* MARK former */
  memset(former, 3, pages * PAGE);
  free(former);
  char* latter = malloc(pages * PAGE); /* MARK latter */
  memset(latter, 4, pages * PAGE);
  char* table = malloc(PAGE);
  table = realloc(table, pages * PAGE); /* MARK table */
  memset(table, 5, pages * PAGE);
  char* mapped =
      mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* MARK mapped */
  memset(mapped, 6, pages * PAGE);
  size_t nodes = pages * PAGE / NODE, others = pages / 2 * PAGE / OTHER;
  char** node = malloc(nodes * sizeof *node);
  char** other = malloc(others * sizeof *other);
  for (size_t i = 0; i < nodes; ++i) {
    node[i] = new_node();
    if (i < others) other[i] = new_other();
  }
  pid_t child = count > 3 ? fork() : 0;
  for (size_t round = 0; child == 0 && round < rounds; ++round) {
    sum += read_block(&state, latter, pages) + read_block(&state, table, pages) + read_block(&state, mapped, pages);
    sum += read_nodes(&state, node, nodes, pages) + read_nodes(&state, other, others, pages / 2);
  }
  if (child == 0) printf("%llu\n", (unsigned long long)sum);
  int status = 0;
  if (child != 0 && (waitpid(child, &status, 0) != child || status != 0)) return 4;
  munmap(mapped, pages * PAGE);
  return 0;
}
