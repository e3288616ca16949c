// A mapping that may not be written, or not even be read, is replaced by one that may, while its pages leave local
// memory: what is there then is the program's to write, and holds what was written.
#include "report.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

enum { kPage = 4096, kPages = 64, kRounds = 1500, kOthers = 4096 };  // others: twice the budget

static atomic_bool g_over;

// So that pages have to leave.
static void* press(void* memory) {
  for (unsigned i = 0; !g_over; ++i) ((volatile char*)memory)[(size_t)(i % kOthers) * kPage] = (char)i;
  return NULL;
}

static void write_all(uint64_t* at, uint64_t round) {
  for (size_t page = 0; page < kPages; ++page) at[page * kPage / 8] = round * kPages + page + 1;
}
static size_t wrong_of(const uint64_t* at, uint64_t round) {
  size_t wrong = 0;
  for (size_t page = 0; page < kPages; ++page) wrong += at[page * kPage / 8] != round * kPages + page + 1;
  return wrong;
}

int main(void) {
  static const int kinds[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_EXEC};
  const size_t bytes = (size_t)kPages * kPage;
  char* others = mmap(NULL, (size_t)kOthers * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* place = mmap(NULL, 3 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(others != MAP_FAILED && place != MAP_FAILED);
  pthread_t presser;
  CHECK(pthread_create(&presser, NULL, press, others) == 0);
  size_t wrong = 0;
  for (uint64_t round = 0; round < kRounds; ++round) {
    uint64_t* at = (uint64_t*)(place + bytes);
    write_all(at, round);
    CHECK(mprotect(at, bytes, kinds[round % 3]) == 0);
    if (madvise(at, bytes, MADV_COLD) != 0) CHECK(errno == EINVAL);
    for (volatile unsigned spins = (unsigned)(round * 2654435761u) % 40000; spins > 0; --spins) continue;
    if (round % 2 == 0) {
      CHECK(mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0);
      wrong += wrong_of(at, round);
    }
    CHECK(mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    for (size_t page = 0; page < kPages; ++page) wrong += at[page * kPage / 8] != 0;
  }
  g_over = 1;
  CHECK(pthread_join(presser, NULL) == 0);
  printf("%zu wrong\n", wrong);
  return 0;
}
