// Memory that is far for the most part, whose every word says which page it belongs to and how often that was
// written, so that a receiver can tell the bytes that were sent from all others.
#pragma once

#include "../../preload/report.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define PAGE 4096ul
#define WORDS (PAGE / sizeof(uint64_t))
#define CHUNK 192ul  // pages that are sent at a time
#define CHUNKS 10ul
#define OTHERS 3072ul  // 12 MiB, three times the budget
#define ROUNDS 3

static char *g_sent, *g_others;
static uint64_t g_generation = 1;
static unsigned char g_received[CHUNK * PAGE];  // not far

static uint64_t word_of(uint64_t page, uint64_t generation, uint64_t index) {
  return 0xfaull << 56 | page << 40 | generation << 16 | index;
}

static void write_page(char* at, uint64_t page, uint64_t generation) {
  uint64_t* words = (uint64_t*)at;
  for (uint64_t i = 0; i < WORDS; ++i) words[i] = word_of(page, generation, i);
}

static char* chunk(uint64_t number) { return g_sent + number * CHUNK * PAGE; }

static void map_far(void) {
  g_sent = mmap(NULL, CHUNKS * CHUNK * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  g_others = mmap(NULL, OTHERS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(g_sent != MAP_FAILED && g_others != MAP_FAILED);
}

// Every `step`th page of a chunk.
static void write_chunk(uint64_t number, uint64_t step, uint64_t generation) {
  for (uint64_t page = 0; page < CHUNK; page += step)
    write_page(chunk(number) + page * PAGE, number * CHUNK + page, generation);
}

// Runs of other pages are written one after the other: what was sent leaves local memory, and others come. Every
// second time they are new ones. In the middle every third page that was sent is written again: natively the receiver
// sees that, too.
static void write_others(void) {
  if (g_generation / 2 % 2 == 1) CHECK(madvise(g_others, OTHERS * PAGE, MADV_DONTNEED) == 0);
  for (uint64_t page = 0; page < OTHERS; ++page) {
    write_page(g_others + page * PAGE, CHUNKS * CHUNK + page, g_generation);
    for (uint64_t number = 0; page == OTHERS / 2 && number < CHUNKS; ++number)
      write_chunk(number, 3, g_generation + 1);
  }
  ++g_generation;
}

// What was received of a chunk: words of each page as they were when it was sent, or later.
static size_t wrong_pages(uint64_t number, size_t bytes) {
  size_t wrong = 0;
  const uint64_t* words = (const uint64_t*)g_received;
  for (size_t page = 0; page < bytes / PAGE; ++page) {
    int same = 1;
    for (size_t i = 0; i < WORDS; ++i) {
      uint64_t word = words[page * WORDS + i], here = number * CHUNK + page;
      same &= word == word_of(here, g_generation - 1, i) || word == word_of(here, g_generation, i);
    }
    wrong += !same;
  }
  return wrong;
}

// Of the program's own pages, which must not change by all that.
static size_t wrong_others(void) {
  size_t wrong = 0;
  for (uint64_t page = 0; page < OTHERS; ++page)
    for (uint64_t i = 0; i < WORDS; i += WORDS - 1)
      wrong += ((uint64_t*)(g_others + page * PAGE))[i] != word_of(CHUNKS * CHUNK + page, g_generation - 1, i);
  return wrong;
}
