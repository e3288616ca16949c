// mremap. Where a range must lie in one mapping, it is one page or a mapping just made: which of the others are one
// mapping depends on what the kernel merges.
#include "lane.h"

static void done(struct Lane* lane, const char* what, struct Range from, long to, void* result, unsigned pages) {
  record(lane, what, place(lane, from.at), from.pages, to, place(lane, result), result == MAP_FAILED ? errno : 0);
  struct Lane before = *lane;
  note_away(lane, result, pages);
  if (lane->away == before.away) drop_away_if_in(lane, from.at);
}

static void shrink(struct Lane* lane) {
  struct Range from = draw_range(lane, 12);
  unsigned left = 1 + draw(lane, from.pages);
  void* result = mremap(from.at, (size_t)from.pages * kPage, (size_t)left * kPage - draw(lane, 2) * 100,
                        chance(lane, 50) ? MREMAP_MAYMOVE : 0);
  done(lane, "mremap shrink", from, left, result, left);
}

static void grow(struct Lane* lane, struct Range from) {
  unsigned more = from.pages + 1 + draw(lane, 8);
  if (more > from.room) more = from.room > from.pages ? from.room : from.pages;
  void* result =
      mremap(from.at, (size_t)from.pages * kPage, (size_t)more * kPage, chance(lane, 50) ? MREMAP_MAYMOVE : 0);
  done(lane, "mremap grow", from, more, result, more);
}

// When a part of a locked mapping is moved and kept, the kernel unlocks all of the mapping. (Linux 6.18.) We do not.
static void unlock_pages(struct Lane* lane) {
  for (unsigned page = 0; page < kInside; ++page) munlock(lane->inside + (size_t)page * kPage, kPage);
  for (unsigned page = 0; page < kOutside; ++page) munlock(lane->outside + (size_t)page * kPage, kPage);
  for (unsigned page = 0; lane->away != NULL && page < lane->away_pages; ++page)
    munlock(lane->away + (size_t)page * kPage, kPage);
}

static void move(struct Lane* lane, struct Range from) {
  int keep = chance(lane, 25) ? MREMAP_DONTUNMAP : 0;
  if (keep != 0) unlock_pages(lane);
  char* target = draw_target(lane, from.pages);
  void* result = mremap(from.at, (size_t)from.pages * kPage, (size_t)from.pages * kPage,
                        MREMAP_MAYMOVE | MREMAP_FIXED | keep, target);
  done(lane, keep != 0 ? "mremap move, keep" : "mremap move", from, place(lane, target), result, from.pages);
}

static void move_and_resize(struct Lane* lane, struct Range from, unsigned pages) {
  char* target = draw_target(lane, pages);
  void* result =
      mremap(from.at, (size_t)from.pages * kPage, (size_t)pages * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, target);
  done(lane, "mremap move and resize", from, place(lane, target) * 100 + pages, result, pages);
}

static void keep_old(struct Lane* lane, struct Range from) {
  size_t length = (size_t)from.pages * kPage;
  unlock_pages(lane);
  void* result = mremap(from.at, length, length, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
  done(lane, "mremap keep", from, 0, result, from.pages);
}

static void duplicate(struct Lane* lane) {
  struct Range from = draw_range(lane, 1);
  unsigned pages = 1 + draw(lane, 4);
  char* target = draw_target(lane, pages);
  bool fixed = chance(lane, 60);
  void* result = fixed ? mremap(from.at, 0, (size_t)pages * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, target)
                       : mremap(from.at, 0, (size_t)pages * kPage, MREMAP_MAYMOVE);
  done(lane, "mremap duplicate", from, fixed ? place(lane, target) * 100 + pages : pages, result, pages);
}

// A mapping of its own, written to, to be moved and resized as a whole or from its start.
static struct Range fresh(struct Lane* lane) {
  struct Range range = draw_range(lane, 8);
  size_t length = (size_t)range.pages * kPage;
  int kind = lane->alone || chance(lane, 80) ? MAP_PRIVATE : MAP_SHARED;
  void* made = mmap(range.at, length, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  CHECK(made == range.at);
  for (size_t at = 0; at < length; at += kPage) range.at[at + draw(lane, kPage)] = (char)(1 + draw(lane, 255));
  if (chance(lane, 15)) RECORD(lane, "don't fork", 0, 0, 0, madvise(range.at, length, MADV_DONTFORK));
  if (chance(lane, 5)) RECORD(lane, "lock", 0, 0, 0, mlock(range.at, length));
  if (kind == MAP_PRIVATE && chance(lane, 10))
    RECORD(lane, "wipe", 0, 0, 0, madvise(range.at, length, MADV_WIPEONFORK));
  if (chance(lane, 30)) range.pages = 1 + draw(lane, range.pages);
  return range;
}

void call_remap(struct Lane* lane) {
  switch (draw(lane, 12)) {
    case 0:
      return shrink(lane);
    case 1:
      return grow(lane, draw_range(lane, 1));
    case 2:
    case 3:
      return move(lane, draw_range(lane, g_multiple_moves ? 10 : 1));
    case 4:
      return move_and_resize(lane, draw_range(lane, 1), 1 + draw(lane, 6));
    case 5:
      return move_and_resize(lane, draw_range(lane, 8), 1);
    case 6:
      return keep_old(lane, draw_range(lane, 1));
    case 7:
      return duplicate(lane);
    case 8:
      return grow(lane, fresh(lane));
    case 9:
      return move(lane, fresh(lane));
    case 10:
      return move_and_resize(lane, fresh(lane), 1 + draw(lane, 12));
    default:
      return keep_old(lane, fresh(lane));
  }
}

void call_remap_badly(struct Lane* lane) {
  struct Range from = draw_range(lane, 4);
  char* target = draw_target(lane, from.pages);
  size_t length = (size_t)from.pages * kPage;
  const int fixed = MREMAP_MAYMOVE | MREMAP_FIXED;
  void* result;
  unsigned which = draw(lane, 14);
  switch (which) {
    case 0:
      result = mremap(from.at + 1, length, length, MREMAP_MAYMOVE);
      break;
    case 1:
      result = mremap(from.at, length, 0, MREMAP_MAYMOVE);
      break;
    case 2:
      result = mremap(from.at, length, length, 64);
      break;
    case 3:
      result = mremap(from.at, length, length, MREMAP_FIXED, target);
      break;
    case 4:
      result = mremap(from.at, length, length, MREMAP_DONTUNMAP, target);
      break;
    case 5:
      result = mremap(from.at, length, length + kPage, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
      break;
    case 6:
      result = mremap(from.at, length, length, fixed, target + 1);
      break;
    case 7:
      result = mremap(from.at, length, length, fixed, from.at);
      break;
    case 8:
      result = mremap(from.at, length, (size_t)1 << 60, MREMAP_MAYMOVE);
      break;
    case 9:
      result = mremap(from.at, length, length, fixed, (void*)((uintptr_t)1 << 60));
      break;
    case 10:
      result = mremap(from.at, length, (size_t)-1, MREMAP_MAYMOVE);
      break;
    case 11:
      result = mremap(from.at, (size_t)1 << 60, length, MREMAP_MAYMOVE);
      break;
    case 12:
      result = mremap((void*)((uintptr_t)1 << 60), length, length, MREMAP_MAYMOVE);
      break;
    default:
      result = mremap(from.at, length, length, fixed, from.at + (from.room > 1 ? kPage : 0) * (from.pages > 1));
  }
  record(lane, "mremap badly", place(lane, from.at), from.pages, which, place(lane, result),
         result == MAP_FAILED ? errno : 0);
  struct Lane before = *lane;
  note_away(lane, result, from.pages);
  if (lane->away == before.away) drop_away_if_in(lane, from.at);
}
