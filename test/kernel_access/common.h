// Shared by the programs: big far buffers with contents that tell each position apart.
#pragma once

#include "../preload/report.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

enum { kMiB = 1 << 20 };

// Bytes of each big buffer: many times the budget of the test.
static inline size_t big_bytes(void) {
  const char* text = getenv("KERNEL_ACCESS_MIB");
  return (size_t)(text != NULL ? atoi(text) : 64) * kMiB;
}

static inline uint64_t word_at(size_t index, uint64_t seed) {
  return (index + 1) * 0x9e3779b97f4a7c15u + seed * 0xc2b2ae3d27d4eb4fu;
}

static inline void fill(void* memory, size_t bytes, uint64_t seed) {
  uint64_t* words = memory;
  for (size_t i = 0; i < bytes / 8; ++i) words[i] = word_at(i, seed);
}

// Words that differ from what fill() wrote.
static inline size_t wrong_words(const void* memory, size_t bytes, uint64_t seed) {
  const uint64_t* words = memory;
  size_t wrong = 0;
  for (size_t i = 0; i < bytes / 8; ++i) wrong += words[i] != word_at(i, seed);
  return wrong;
}

static inline void* big_malloc(size_t bytes) {
  void* memory = malloc(bytes);
  CHECK(memory != NULL);
  return memory;
}

static inline void* big_mmap(size_t bytes) {
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  return memory;
}

// Writes over so much other memory that what was there before is far (or back from there, and protected).
static inline void push_out(void) {
  static uint64_t* other;
  static uint64_t round;
  const size_t bytes = 10 * (size_t)kMiB;
  if (other == NULL) other = big_mmap(bytes);
  ++round;
  for (size_t i = 0; i < bytes / 8; i += 512) other[i] = round + i;
}

// An unnamed file of the current directory, of a real file system if the directory is on one.
static inline int scratch_file(int flags) {
  char name[] = "kernel-access-XXXXXX";
  int first = mkostemp(name, O_CLOEXEC);
  CHECK(first >= 0);
  int file = flags == 0 ? first : open(name, O_RDWR | O_CLOEXEC | flags);
  int problem = errno;
  unlink(name);
  if (file != first) close(first);
  errno = problem;
  return file;
}
