// What each cell of a lane holds, and what those who hold it may see.
#include "held.h"

long g_traced = -1, g_first;

unsigned draw(struct Lane* lane, unsigned below) {
  lane->random = lane->random * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)((lane->random >> 33) % below);
}

bool chance(struct Lane* lane, unsigned percent) { return draw(lane, 100) < percent; }

static long sequence_of(const struct Lane* lane) { return g_first + (long)lane->number; }

// What each lane did last, for those that go wrong in company alone.
enum { kRemembered = 64 };
struct Done {
  const char* what;
  long a, b, result;
  unsigned call;
};
static struct Done g_done[kLanes][kRemembered];
static unsigned g_count[kLanes];

static void remember(const struct Lane* lane, const char* what, long a, long b, long result) {
  unsigned at = lane->number % kLanes;
  g_done[at][g_count[at]++ % kRemembered] = (struct Done){what, a, b, result, lane->call};
}

static void print_remembered(const struct Lane* lane) {
  unsigned at = lane->number % kLanes, count = g_count[at];
  for (unsigned i = count < kRemembered ? 0 : count - kRemembered; i < count; ++i) {
    const struct Done* done = &g_done[at][i % kRemembered];
    fprintf(stderr, "before: %u %s %ld %ld: %ld\n", done->call, done->what, done->a, done->b, done->result);
  }
}

// All of it goes to the file that HINTERLAND_TEST_RECORDS names, so that the call is known that made the difference,
// though the sequence makes none when it runs alone.
static void keep_record(const struct Lane* lane, const char* what, long a, long b, long result) {
  static FILE* file;
  static char room[1 << 16];
  if (file == NULL) {
    const char* path = getenv("HINTERLAND_TEST_RECORDS");
    file = fopen(path != NULL ? path : "/dev/null", "we");
    CHECK(file != NULL);
    setvbuf(file, room, _IOFBF, sizeof room);
  }
  fprintf(file, "%ld %u %s %ld %ld: %ld\n", sequence_of(lane), lane->call, what, a, b, result);
}

void note(const struct Lane* lane, const char* what, long a, long b, long result) {
  remember(lane, what, a, b, result);
  if (g_traced != sequence_of(lane)) return;
  char line[160];
  int length = snprintf(line, sizeof line, "%u %s %ld %ld: %ld\n", lane->call, what, a, b, result);
  CHECK(write(2, line, (size_t)length) == length);
}

void record(struct Lane* lane, const char* what, long a, long b, long result) {
  lane->digest = (lane->digest ^ (uint64_t)result) * 0x9e3779b97f4a7c15u;
  lane->digest ^= lane->digest >> 29;
  remember(lane, what, a, b, result);
  keep_record(lane, what, a, b, result);
  if (g_traced != sequence_of(lane)) return;
  printf("%u %s %ld %ld: %ld\n", lane->call, what, a, b, result);
  fflush(stdout);
}

void wrong(const struct Lane* lane, const char* what, long where, uint64_t expected, uint64_t found) {
  printf("wrong in sequence %ld, call %u, %s at %ld: stamp %llx expected, found %llx\n", sequence_of(lane),
         lane->call, what, where, (unsigned long long)expected, (unsigned long long)found);
  fflush(stdout);
  print_remembered(lane);
  _exit(4);
}

// The first word is the stamp; the others follow from it.
void fill_cell(uint64_t stamp, char* cell) {
  uint64_t* words = (uint64_t*)cell;
  uint64_t word = stamp;
  for (size_t i = 0; i < kCell / sizeof word; ++i, word += stamp * 0x9e3779b97f4a7c15u) words[i] = word;
}

uint64_t stamp_of(const char* cell) {
  uint64_t stamp;
  memcpy(&stamp, cell, sizeof stamp);
  return stamp;
}

uint64_t new_stamp(struct Lane* lane) { return (uint64_t)(sequence_of(lane) + 1) << 20 | ++lane->next_stamp; }

static struct Part* part_of(struct Stream* stream, int index) {
  return &stream->parts[(stream->first + index) % kParts];
}

void make_room_for_version(struct Lane* lane, int cell) {
  for (int i = 0; i < kStreams; ++i) {
    struct Stream* stream = &lane->streams[i];
    bool full = false;
    for (int j = 0; j < stream->count; ++j)
      full |= part_of(stream, j)->at == cell && part_of(stream, j)->versions == kVersions;
    if (full) receive(lane, stream, bytes_waiting(stream));
  }
}

void cell_seen(struct Lane* lane, int cell, uint64_t stamp) {
  for (int i = 0; i < kStreams; ++i)
    for (int j = 0; j < lane->streams[i].count; ++j) {
      struct Part* part = part_of(&lane->streams[i], j);
      if (part->at == cell) part->stamps[part->versions++] = stamp;
    }
}

void cell_written(struct Lane* lane, int cell, uint64_t stamp) {
  lane->cells[cell] = stamp;
  cell_seen(lane, cell, stamp);
}

// The cell's place in a request that still has its page; -1: it has none.
static int index_in(const struct Request* request, int cell) {
  int index = cell - request->cell;
  return request->under_way && index >= 0 && index < request->cells && !request->dropped[index] ? index : -1;
}

// Requests keep the pages that they began with.
static void leave_requests(struct Lane* lane, int cell) {
  struct Request* requests[] = {&lane->request, &lane->registered};
  int here = index_in(&lane->request, cell), there = index_in(&lane->registered, cell);
  if (here >= 0 && there >= 0) lane->request.together[here] = true;
  for (int i = 0; i < 2; ++i) {
    struct Request* request = requests[i];
    if (!request->under_way || cell < request->cell || cell >= request->cell + request->cells) continue;
    int index = cell - request->cell;
    if (!request->dropped[index] && request == &lane->registered) request->stamps[index] = lane->cells[cell];
    request->dropped[index] = true;
  }
}

void cell_dropped(struct Lane* lane, int cell) {
  leave_requests(lane, cell);
  lane->cells[cell] = 0;
  for (int i = 0; i < kStreams; ++i)
    for (int j = 0; j < lane->streams[i].count; ++j) {
      struct Part* part = part_of(&lane->streams[i], j);
      if (part->at == cell) part->at = -1;
    }
}

void cell_moved(struct Lane* lane, int from, int to) {
  cell_dropped(lane, to);
  uint64_t stamp = lane->cells[from];
  leave_requests(lane, from);
  for (int i = 0; i < kStreams; ++i)
    for (int j = 0; j < lane->streams[i].count; ++j) {
      struct Part* part = part_of(&lane->streams[i], j);
      if (part->at == from) part->at = (short)to;
    }
  lane->cells[from] = 0;
  lane->cells[to] = stamp;
}

void check_cells(const struct Lane* lane, const char* what, const char* bytes, int cell, int cells) {
  static char expected[kCell];
  for (int i = 0; i < cells; ++i) {
    fill_cell(lane->cells[cell + i], expected);
    if (memcmp(expected, bytes + (size_t)i * kCell, kCell) != 0)
      wrong(lane, what, cell + i, lane->cells[cell + i], stamp_of(bytes + (size_t)i * kCell));
  }
}

bool all_have(const struct Lane* lane, int page, int pages, int protection) {
  for (int i = page; i < page + pages; ++i)
    if (lane->protection[i] < 0 || (lane->protection[i] & protection) != protection) return false;
  return true;
}

static bool overlaps(const struct Request* request, int page, int pages) {
  return request->under_way && request->cell < (page + pages) * kCellsOfPage &&
         page * kCellsOfPage < request->cell + request->cells;
}

bool is_busy(const struct Lane* lane, int page, int pages) { return overlaps(&lane->request, page, pages); }

// All that can be read, by the program itself.
void check_memory(struct Lane* lane) {
  for (int page = 0; page < kPages; ++page)
    if (all_have(lane, page, 1, PROT_READ) && !is_busy(lane, page, 1))
      check_cells(lane, "memory", lane->memory + (size_t)page * kPage, page * kCellsOfPage, kCellsOfPage);
}
