// madvise and posix_madvise.
#include "lane.h"

void call_advise(struct Lane* lane) {
  static const int advices[] = {MADV_DONTNEED,
                                MADV_DONTNEED,
                                MADV_DONTNEED,
                                MADV_DONTNEED,
                                MADV_DONTNEED_LOCKED,
                                MADV_WILLNEED,
                                MADV_REMOVE,
                                MADV_REMOVE,
                                MADV_DONTFORK,
                                MADV_DONTFORK,
                                MADV_DOFORK,
                                MADV_WIPEONFORK,
                                MADV_WIPEONFORK,
                                MADV_KEEPONFORK,
                                MADV_DONTDUMP,
                                MADV_DODUMP,
                                MADV_HUGEPAGE,
                                MADV_NOHUGEPAGE,
                                MADV_POPULATE_READ,
                                MADV_POPULATE_WRITE,
                                MADV_COLD,
                                MADV_PAGEOUT,
                                MADV_NORMAL,
                                MADV_RANDOM,
                                MADV_SEQUENTIAL,
                                5,
                                6,
                                7,
                                28,
                                99,
                                9999,
                                -1};
  struct Range range = draw_range(lane, 12);
  int advice = advices[draw(lane, sizeof advices / sizeof *advices)];
  size_t length = (size_t)range.pages * kPage - (chance(lane, 10) ? draw(lane, kPage) : 0);
  switch (draw(lane, 60)) {
    case 0:
      range.at += 1;
      break;
    case 1:
      length = 0;
      break;
    case 2:
      length = (size_t)-1 - draw(lane, 100);
      break;
    default:
      break;
  }
  if (chance(lane, 95)) {
    RECORD(lane, "madvise", place(lane, range.at), range.pages, advice, madvise(range.at, length, advice));
    return;
  }
  advice = (int)draw(lane, 6);
  record(lane, "posix_madvise", place(lane, range.at), range.pages, advice, posix_madvise(range.at, length, advice),
         0);
}

// What FREE leaves is either the old bytes or zeros; after it the bytes are made equal again.
void call_free_advice(struct Lane* lane) {
  struct Range range = draw_range(lane, 6);
  size_t length = (size_t)range.pages * kPage;
  static uint64_t before[6];
  for (unsigned i = 0; i < range.pages; ++i) before[i] = digest_of(range.at + (size_t)i * kPage, 1);
  static uint64_t zeros = 0;
  if (zeros == 0) {
    void* empty = mmap(NULL, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    zeros = digest_of(empty, 1);
    munmap(empty, kPage);
  }
  int result = madvise(range.at, length, MADV_FREE);
  RECORD(lane, "madvise free", place(lane, range.at), range.pages, 0, result);
  for (unsigned i = 0; i < range.pages; ++i) {
    uint64_t after = digest_of(range.at + (size_t)i * kPage, 1);
    record(lane, "old or zero", i, 0, 0, after == before[i] || after == zeros, 0);
  }
  RECORD(lane, "madvise after free", place(lane, range.at), range.pages, 0,
         madvise(range.at, length, MADV_DONTNEED_LOCKED));
}
