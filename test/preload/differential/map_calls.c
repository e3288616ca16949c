// mmap with all its flags, munmap, mprotect.
#include "lane.h"

#ifndef MAP_SYNC
#define MAP_SYNC 0x80000
#endif

struct Kind {
  int flags;
  int descriptor;
  off_t offset;
};

static struct Kind draw_kind(struct Lane* lane) {
  off_t own = ((off_t)lane->number * kFilePages + draw(lane, kFilePages - 6)) * kPage, small = draw(lane, 20) * kPage;
  unsigned kind = draw(lane, 100);
  if (lane->alone && kind >= 62 && kind < 94) kind = 0;
  if (kind < 62) return (struct Kind){MAP_PRIVATE | MAP_ANONYMOUS, chance(lane, 90) ? -1 : 777, 0};
  if (kind < 72) return (struct Kind){MAP_SHARED | MAP_ANONYMOUS, -1, 0};
  if (kind < 80) return (struct Kind){MAP_PRIVATE, g_small_file, small};
  if (kind < 86) return (struct Kind){MAP_SHARED, g_own_files, own};
  if (kind < 90) return (struct Kind){MAP_SHARED, g_small_file, small};
  if (kind < 92) return (struct Kind){MAP_SHARED_VALIDATE, g_own_files, own};
  if (kind < 94) return (struct Kind){MAP_PRIVATE, g_own_files, own};
  if (kind < 95) return (struct Kind){MAP_SHARED_VALIDATE | MAP_SYNC, g_own_files, own};
  if (kind < 96) return (struct Kind){MAP_ANONYMOUS, -1, 0};
  if (kind < 97) return (struct Kind){MAP_SHARED_VALIDATE | MAP_ANONYMOUS, -1, 0};
  if (kind < 98) return (struct Kind){MAP_PRIVATE, 777, 0};
  return (struct Kind){MAP_PRIVATE | MAP_ANONYMOUS, -1, chance(lane, 50) ? 1 : kPage};
}

// Without a meaning for the kernel; what has it stays local.
int stack_flag(struct Lane* lane) { return chance(lane, lane->number % 2 != 0 ? 50 : 8) ? MAP_STACK : 0; }

static int draw_more_flags(struct Lane* lane) {
  int flags = 0;
  if (chance(lane, 15)) flags |= MAP_NORESERVE;
  if (chance(lane, 10)) flags |= MAP_POPULATE;
  if (chance(lane, 2)) flags |= MAP_NONBLOCK;
  if (chance(lane, 4)) flags |= MAP_LOCKED;
  flags |= stack_flag(lane);
  if (chance(lane, 3)) flags |= MAP_DENYWRITE;
  return flags;
}

void call_map(struct Lane* lane) {
  struct Range range = draw_range(lane, 12);
  struct Kind kind = draw_kind(lane);
  int protection = draw_protection(lane), flags = kind.flags | draw_more_flags(lane);
  char* at = range.at;
  size_t length = (size_t)range.pages * kPage - (chance(lane, 20) ? draw(lane, kPage) : 0);
  unsigned how = draw(lane, 100);
  if (how < 55)
    flags |= MAP_FIXED;
  else if (how < 70)
    flags |= MAP_FIXED_NOREPLACE;
  else if (how < 82)
    at += chance(lane, 20) ? draw(lane, kPage) : 0;  // a hint
  else if (how < 88)
    at = NULL;
  else if (how < 93)
    flags |= MAP_32BIT;
  else if (how < 96)
    flags |= MAP_FIXED | MAP_32BIT;
  else if (how < 98)
    flags |= MAP_FIXED | MAP_FIXED_NOREPLACE;
  else
    flags |= MAP_FIXED, at += 1 + draw(lane, kPage - 1);
  void* result = mmap(at, length, protection, flags, kind.descriptor, kind.offset);
  record(lane, "mmap", place(lane, range.at) * 100 + range.pages, flags, protection, place(lane, result),
         result == MAP_FAILED ? errno : 0);
  if (result != MAP_FAILED && (flags & (MAP_32BIT | MAP_FIXED)) == MAP_32BIT)
    record(lane, "below 4G", 0, 0, 0, (uintptr_t)result >> 32 == 0, 0);
  note_away(lane, result, range.pages);
}

static void bad_map(struct Lane* lane, const char* what, void* at, size_t length, int flags, int descriptor,
                    off_t offset) {
  void* result = mmap(at, length, PROT_READ | PROT_WRITE, flags, descriptor, offset);
  record(lane, what, 0, 0, 0, place(lane, result), result == MAP_FAILED ? errno : 0);
  if (place(lane, result) == 1000) CHECK(munmap(result, length) == 0);
}

void call_map_badly(struct Lane* lane) {
  const int plain = MAP_PRIVATE | MAP_ANONYMOUS;
  struct Range range = draw_range(lane, 4);
  char* odd = range.at + 1 + draw(lane, kPage - 1);
  switch (draw(lane, 8)) {
    case 0:
      return bad_map(lane, "mmap nothing", range.at, 0, plain | (chance(lane, 50) ? MAP_FIXED : 0), -1, 0);
    case 1:
      return bad_map(lane, "mmap all", NULL, (size_t)-1 - draw(lane, 9000), plain, -1, 0);
    case 2:
      return bad_map(lane, "mmap huge", NULL, (size_t)1 << (46 + draw(lane, 5)), plain, -1, 0);
    case 3:
      return bad_map(lane, "mmap over the end", range.at, (size_t)1 << 47, plain | MAP_FIXED, -1, 0);
    case 4:  // no huge pages are set aside: see main.c
      return bad_map(lane, "mmap huge page", NULL, kPage * range.pages, plain | MAP_HUGETLB, -1, 0);
    case 5:
      return bad_map(lane, "mmap huge page, odd", odd, kPage, plain | MAP_HUGETLB | MAP_FIXED, -1, 0);
    case 6:
      return bad_map(lane, "mmap huge page, no such size", NULL, kPage, plain | MAP_HUGETLB | 13 << 26, -1, 0);
    default:
      return bad_map(lane, "mmap odd offset", range.at, kPage, MAP_PRIVATE | MAP_FIXED, g_small_file, 123);
  }
}

void call_unmap(struct Lane* lane) {
  struct Range range = draw_range(lane, 12);
  size_t length = (size_t)range.pages * kPage;
  const char* what = "munmap";
  switch (draw(lane, 40)) {
    case 0:
      range.at += 1, what = "munmap odd";
      break;
    case 1:
      length = 0, what = "munmap nothing";
      break;
    case 2:
      length = (size_t)1 << 60, what = "munmap huge";
      break;
    default:
      length -= chance(lane, 20) ? draw(lane, kPage) : 0;
  }
  RECORD(lane, what, place(lane, range.at), range.pages, 0, munmap(range.at, length));
  drop_away_if_in(lane, range.at);
}

void call_protect(struct Lane* lane) {
  static const int odd[] = {8 /* PROT_SEM */ | PROT_READ | PROT_WRITE,
                            PROT_WRITE,
                            0x10,
                            PROT_GROWSDOWN,
                            PROT_GROWSDOWN | PROT_GROWSUP,
                            PROT_EXEC,
                            -1};
  struct Range range = draw_range(lane, 12);
  int protection = chance(lane, 92) ? draw_protection(lane) : odd[draw(lane, 7)];
  size_t length = (size_t)range.pages * kPage - (chance(lane, 20) ? draw(lane, kPage) : 0);
  switch (draw(lane, 60)) {
    case 0:
      range.at += 1;
      break;
    case 1:
      length = 0;
      break;
    case 2:
      length = (size_t)-1 - draw(lane, 9000);
      break;
    default:
      break;
  }
  RECORD(lane, "mprotect", place(lane, range.at), range.pages, protection, mprotect(range.at, length, protection));
}
