// What a lane draws: numbers, ranges, places.
#include "lane.h"

unsigned draw(struct Lane* lane, unsigned below) {
  lane->random = lane->random * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)((lane->random >> 33) % below);
}

bool chance(struct Lane* lane, unsigned percent) { return draw(lane, 100) < percent; }

struct Range draw_range(struct Lane* lane, unsigned longest) {
  unsigned kind = draw(lane, 100);
  char* base = lane->inside;
  unsigned pages = kInside;
  if (kind >= 92 && lane->away != NULL) {
    base = lane->away;
    pages = lane->away_pages;
  } else if (kind >= 72) {
    base = lane->outside;
    pages = kOutside;
  }
  unsigned page = draw(lane, pages), length = 1 + draw(lane, longest);
  if (page + length > pages) length = pages - page;
  return (struct Range){base + (size_t)page * kPage, length, pages - page};
}

char* draw_target(struct Lane* lane, unsigned pages) {
  bool outside = pages <= kOutside && chance(lane, 20);
  unsigned room = (outside ? kOutside : kInside) - pages;
  return (outside ? lane->outside : lane->inside) + (size_t)draw(lane, room + 1) * kPage;
}

static bool within(const char* at, const char* base, unsigned pages) {
  return base != NULL && at >= base && at < base + (size_t)pages * kPage;
}

long place(const struct Lane* lane, const void* address) {
  const char* at = address;
  if (address == MAP_FAILED) return -1;
  if (within(at, lane->inside, kInside)) return (at - lane->inside) / kPage;
  if (within(at, lane->outside, kOutside)) return 100 + (at - lane->outside) / kPage;
  if (within(at, lane->away, lane->away_pages)) return 200 + (at - lane->away) / kPage;
  return 1000;
}

int draw_protection(struct Lane* lane) {
  static const int kinds[] = {PROT_READ | PROT_WRITE,
                              PROT_READ | PROT_WRITE,
                              PROT_READ | PROT_WRITE,
                              PROT_READ,
                              PROT_READ | PROT_EXEC,
                              PROT_READ | PROT_WRITE | PROT_EXEC,
                              PROT_NONE,
                              PROT_NONE};
  return kinds[draw(lane, 8)];
}

void drop_away_if_in(struct Lane* lane, const void* address) {
  if (!within(address, lane->away, lane->away_pages)) return;
  CHECK(munmap(lane->away, (size_t)lane->away_pages * kPage) == 0);
  lane->away = NULL;
}

void note_away(struct Lane* lane, void* address, unsigned pages) {
  if (address == MAP_FAILED || place(lane, address) != 1000) return;
  if (lane->away != NULL) CHECK(munmap(lane->away, (size_t)lane->away_pages * kPage) == 0);
  lane->away = address;
  lane->away_pages = pages;
}
