// realloc of large blocks, which moves pages: each byte is as natively, also the zeros of what calloc gave and nobody
// wrote, where the new block was full of other data before; in several threads, in forked children, and in place.
#include "report.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>

enum { kBlocks = 6, kSteps = 160, kThreads = 3 };
#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

typedef struct {
  uint64_t* words;
  size_t bytes;
  uint64_t seed;  // of what is in it; 0: zeros from calloc, but for one word a megabyte
} Block;

static uint64_t mix(uint64_t x) {
  x ^= x >> 31;
  x *= 0x9E3779B97F4A7C15u;
  return x ^ x >> 29;
}

static uint64_t expected(const Block* block, size_t word) {
  if (block->seed != 0) return mix(block->seed + word);
  return word % (MIB / 8) == 7 ? word : 0;
}

static void fill(Block* block, size_t from_bytes) {
  for (size_t word = from_bytes / 8; word < block->bytes / 8; ++word)
    if (block->seed != 0 || word % (MIB / 8) == 7) block->words[word] = expected(block, word);
}

// The first wrong word, or none.
static long wrong(const Block* block, size_t bytes) {
  for (size_t word = 0; word < bytes / 8; ++word)
    if (block->words[word] != expected(block, word)) return (long)word;
  return -1;
}

static Block new_block(uint64_t random) {
  Block block = {NULL, 300 * KIB + random % (2 * MIB) / 8 * 8, random % 3 == 0 ? 0 : random | 1};
  block.words = block.seed == 0 ? calloc(1, block.bytes) : malloc(block.bytes);
  CHECK(block.words != NULL);
  fill(&block, 0);
  return block;
}

// What came is of nobody's choice: it is zeroed in blocks whose rest has to be.
static void resize(Block* block, size_t bytes) {
  size_t kept = bytes < block->bytes ? bytes : block->bytes;
  uint64_t* words = realloc(block->words, bytes);
  CHECK(words != NULL);
  block->words = words;
  block->bytes = bytes;
  CHECK(wrong(block, kept) < 0);
  if (block->seed == 0) memset((char*)words + kept, 0, bytes - kept);
  fill(block, kept);
}

static uint64_t churn(uint64_t random, int steps) {
  Block blocks[kBlocks];
  for (int i = 0; i < kBlocks; ++i) blocks[i] = new_block(random = mix(random + 1));
  for (int step = 0; step < steps; ++step) {
    random = mix(random + 1);
    Block* block = &blocks[random % kBlocks];
    uint64_t how = random >> 8 & 15, amount = random >> 16;
    if (how == 0 || block->bytes > 6 * MIB) {  // its pages are another block's soon, as they are
      CHECK(wrong(block, block->bytes) < 0);
      free(block->words);
      *block = new_block(random);
    } else if (how < 4) {
      resize(block, 256 * KIB + amount % block->bytes / 8 * 8);
    } else {
      resize(block, block->bytes + block->bytes / 8 / 8 * 8 + amount % (256 * KIB) / 8 * 8);
    }
  }
  uint64_t sum = 0;
  for (int i = 0; i < kBlocks; ++i) {
    CHECK(wrong(&blocks[i], blocks[i].bytes) < 0);
    sum = mix(sum + blocks[i].bytes + blocks[i].words[blocks[i].bytes / 16]);
    free(blocks[i].words);
  }
  return sum;
}

static void* run(void* seed) { return (void*)(uintptr_t)churn((uintptr_t)seed, kSteps); }

static void in_threads(void) {
  pthread_t threads[kThreads];
  for (uintptr_t i = 0; i < kThreads; ++i) CHECK(pthread_create(&threads[i], NULL, run, (void*)(i + 10)) == 0);
  for (int i = 0; i < kThreads; ++i) {
    void* sum;
    CHECK(pthread_join(threads[i], &sum) == 0);
    printf("thread %d: %lx\n", i, (unsigned long)(uintptr_t)sum);
  }
}

// Parent and child go on with the same blocks.
static void in_children(void) {
  Block block = new_block(12345);
  for (int i = 0; i < 4; ++i) {
    resize(&block, block.bytes + MIB);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      resize(&block, block.bytes + 2 * MIB);
      resize(&block, block.bytes / 2 / 8 * 8);
      _exit(churn(i + 100, 30) == 0);
    }
    resize(&block, block.bytes + MIB / 2);
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    printf("child %d: status %d\n", i, status);
  }
  CHECK(wrong(&block, block.bytes) < 0);
  free(block.words);
}

// A block grows by an eighth, over and over, as vectors do; then it is read.
static void by_an_eighth(void) {
  Block block = {malloc(64 * KIB), 64 * KIB, 77};
  CHECK(block.words != NULL);
  fill(&block, 0);
  while (block.bytes < 24 * MIB) {
    size_t bytes = (block.bytes + block.bytes / 8) / 8 * 8, kept = block.bytes;
    block.words = realloc(block.words, bytes);
    CHECK(block.words != NULL);
    block.bytes = bytes;
    fill(&block, kept);
  }
  printf("grew to %zu, wrong at %ld\n", block.bytes, wrong(&block, block.bytes));
  free(block.words);
}

int main(void) {
  check_preloaded();
  printf("alone: %lx\n", (unsigned long)churn(1, kSteps));
  in_threads();
  in_children();
  by_an_eighth();
  errno = 0;
  char* block = malloc(MIB);
  CHECK(block != NULL);
  block[MIB - 1] = 5;
  CHECK(realloc(block, (size_t)1 << 62) == NULL && errno == ENOMEM && block[MIB - 1] == 5);
  free(block);
  puts("done");
  return 0;
}
