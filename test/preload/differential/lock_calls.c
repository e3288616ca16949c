// mlock and its relatives, mincore, msync.
#include "lane.h"

void call_lock(struct Lane* lane) {
  struct Range range = draw_range(lane, 8);
  size_t length = (size_t)range.pages * kPage;
  if (chance(lane, 4)) length = chance(lane, 50) ? 0 : (size_t)-1 - draw(lane, 100);
  // Not in the away mapping, whose neighbours are anybody's.
  char* at = range.at + (chance(lane, 10) && place(lane, range.at) < 200 ? draw(lane, kPage) : 0);
  switch (draw(lane, 6)) {
    case 0:
      RECORD(lane, "mlock", place(lane, range.at), range.pages, 0, mlock(at, length));
      break;
    case 1:
      RECORD(lane, "mlock2", place(lane, range.at), range.pages, 0, mlock2(at, length, MLOCK_ONFAULT));
      break;
    case 2:
      RECORD(lane, "mlock2 badly", place(lane, range.at), range.pages, 0, mlock2(at, length, 6));
      break;
    default:
      RECORD(lane, "munlock", place(lane, range.at), range.pages, 0, munlock(at, length));
  }
}

// Whether a page is in memory is a hint, and the pages that far memory holds count as being in it. So only this is
// compared: the call's result, and that a page which was just written is said to be there.
void call_core(struct Lane* lane) {
  struct Range range = draw_range(lane, 12);
  unsigned char present[16];
  unsigned odd = draw(lane, 20);
  size_t length = (size_t)range.pages * kPage - (chance(lane, 20) ? draw(lane, kPage) : 0);
  int result = mincore(odd == 0 ? range.at + 1 : range.at, length, odd == 1 ? (unsigned char*)8 : present);
  RECORD(lane, "mincore", place(lane, range.at), range.pages, odd, result);
  char bytes[8] = "written";
  int ends[2];
  static int g_pipe[2] = {-1, -1};
  if (g_pipe[0] < 0) {
    CHECK(pipe(ends) == 0);
    g_pipe[0] = ends[0], g_pipe[1] = ends[1];
  }
  CHECK(write(g_pipe[1], bytes, 8) == 8);
  bool written = read(g_pipe[0], range.at, 8) == 8;
  if (!written) CHECK(read(g_pipe[0], bytes, 8) == 8);
  RECORD(lane, "mincore of a written page", 0, 0, 0, !written ? -2 : mincore(range.at, kPage, present));
  if (written) record(lane, "is there", 0, 0, 0, present[0] & 1, 0);
}

void call_sync(struct Lane* lane) {
  static const int all[] = {MS_SYNC, MS_ASYNC, MS_SYNC | MS_INVALIDATE, MS_INVALIDATE, MS_SYNC | MS_ASYNC, 0, 64};
  struct Range range = draw_range(lane, 12);
  int flags = all[draw(lane, 7)];
  size_t length = chance(lane, 5) ? 0 : (size_t)range.pages * kPage;
  char* at = range.at + (chance(lane, 5) ? 1 : 0);
  RECORD(lane, "msync", place(lane, range.at), range.pages, flags, msync(at, length, flags));
}
