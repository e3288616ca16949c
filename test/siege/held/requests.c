// Requests that the kernel works on while the lane and others go on: Linux AIO past the page cache, sends by io_uring
// that hold their pages, and buffers that are registered with it.
#include "held.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/uio.h>

#include "../references/ring.h"

enum { kRegistering = 4 };  // lanes that have a ring of their own

static struct Ring g_ring, g_rings[kRegistering];
static bool g_has_ring, g_has_registered;
static aio_context_t g_context;
// Files with kAll bytes of each lane: past the page cache, the same through it, and another in memory.
static int g_file, g_plain, g_fixed;
static char g_bytes[kAll] __attribute__((aligned(4096)));  // not far

static bool open_registering_ring(struct Ring* ring) {
  char byte[kPage] __attribute__((aligned(4096)));
  struct iovec any = {byte, sizeof byte};
  if (!ring_open(ring)) return false;
  bool allowed = syscall(SYS_io_uring_register, ring->descriptor, IORING_REGISTER_BUFFERS, &any, 1) == 0;
  return allowed && syscall(SYS_io_uring_register, ring->descriptor, IORING_UNREGISTER_BUFFERS, NULL, 0) == 0;
}

void open_requests(void) {
  g_has_ring = ring_open(&g_ring);
  g_has_registered = g_has_ring;
  for (int i = 0; i < kRegistering && g_has_registered; ++i) g_has_registered = open_registering_ring(&g_rings[i]);
  if (!g_has_registered) fprintf(stderr, "no registered buffers here\n");
  char name[] = "./held-XXXXXX";
  int made = mkstemp(name);
  CHECK(made >= 0 && ftruncate(made, (off_t)kLanes * kAll) == 0);
  g_file = open(name, O_RDWR | O_DIRECT | O_CLOEXEC);
  if (g_file < 0) fprintf(stderr, "requests go through the page cache here: no O_DIRECT\n");
  if (g_file < 0) g_file = open(name, O_RDWR | O_CLOEXEC);
  CHECK(g_file >= 0 && unlink(name) == 0);
  g_plain = made;
  g_fixed = memfd_create("fixed", MFD_CLOEXEC);
  CHECK(g_fixed >= 0 && ftruncate(g_fixed, (off_t)kLanes * kAll) == 0);
  CHECK(syscall(SYS_io_setup, kLanes, &g_context) == 0);
}

// --- Linux AIO

static struct Lane* g_lanes_by_number[kLanes];

static void take_completion(void) {
  struct io_event event;
  long got;
  while ((got = syscall(SYS_io_getevents, g_context, 1, 1, &event, NULL)) < 0) CHECK(errno == EINTR);
  CHECK(got == 1);
  struct Lane* lane = g_lanes_by_number[event.data];
  lane->request.completed = true;
  lane->request.result = (long)event.res;
}

static void finish_request(struct Lane* lane) {
  struct Request* request = &lane->request;
  if (!request->under_way) return;
  while (!request->completed) take_completion();
  size_t bytes = (size_t)request->cells * kCell;
  record(lane, request->reads ? "read past the cache" : "written past the cache", request->cell, request->cells,
         request->result);
  if (request->result != (long)bytes) wrong(lane, "a request", request->cell, bytes, (uint64_t)request->result);
  int cells = request->cells;
  request->under_way = false;
  if (request->reads) {
    for (int i = 0; i < cells; ++i) {
      int cell = request->cell + i;
      if (!request->dropped[i]) lane->cells[cell] = request->stamps[i];
      if (request->together[i]) lane->registered.stamps[cell - lane->registered.cell] = request->stamps[i];
    }
    return;
  }
  CHECK(pread(g_plain, g_bytes, bytes, (off_t)lane->number * kAll) == (ssize_t)bytes);
  static char expected[kCell];
  for (int i = 0; i < cells; ++i) {
    fill_cell(request->stamps[i], expected);
    if (memcmp(expected, g_bytes + (size_t)i * kCell, kCell) != 0)
      wrong(lane, "what was written past the cache", request->cell + i, request->stamps[i],
            stamp_of(g_bytes + (size_t)i * kCell));
  }
}

static void begin_request(struct Lane* lane, int page, int pages, bool reads) {
  struct Request* request = &lane->request;
  *request = (struct Request){.reads = reads, .cell = page * kCellsOfPage, .cells = pages * kCellsOfPage};
  size_t bytes = (size_t)pages * kPage;
  off_t at = (off_t)lane->number * kAll;
  for (int i = 0; i < request->cells; ++i) {
    if (reads) make_room_for_version(lane, request->cell + i);
    request->stamps[i] = reads ? new_stamp(lane) : lane->cells[request->cell + i];
    if (reads) fill_cell(request->stamps[i], g_bytes + (size_t)i * kCell);
    if (reads) cell_seen(lane, request->cell + i, request->stamps[i]);
  }
  if (reads) CHECK(pwrite(g_plain, g_bytes, bytes, at) == (ssize_t)bytes);
  struct iocb block = {.aio_data = lane->number,
                       .aio_lio_opcode = reads ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE,
                       .aio_fildes = (unsigned)g_file,
                       .aio_buf = (uintptr_t)lane->memory + (size_t)page * kPage,
                       .aio_nbytes = bytes,
                       .aio_offset = at};
  struct iocb* blocks[] = {&block};
  g_lanes_by_number[lane->number] = lane;
  CHECK(syscall(SYS_io_submit, g_context, 1, blocks) == 1);
  request->under_way = true;
}

void call_request(struct Lane* lane) {
  if (lane->request.under_way) return finish_request(lane);
  int page = (int)draw(lane, kPages), pages = 1 + (int)draw(lane, kLongest);
  bool reads = chance(lane, 50);
  if (page + pages > kPages) pages = kPages - page;
  if (!all_have(lane, page, pages, PROT_READ | (reads ? PROT_WRITE : 0))) return;
  begin_request(lane, page, pages, reads);
  record(lane, reads ? "read begun" : "write begun", page, pages, 0);
  // At once, so that a page which leaves in between has the result.
  if (chance(lane, 30)) finish_request(lane);
}

// --- io_uring

void call_ring_send(struct Lane* lane) {
  struct Stream* stream = &lane->streams[kSocket];
  int page = (int)draw(lane, kPages), pages = 1 + (int)draw(lane, kLongest);
  if (page + pages > kPages) pages = kPages - page;
  if (!g_has_ring || !all_have(lane, page, pages, PROT_READ) || is_busy(lane, page, pages)) return;
  if (stream->count + pages * kCellsOfPage + 2 >= kParts) return;
  int done = ring_send(&g_ring, stream->in, lane->memory + (size_t)page * kPage, (size_t)pages * kPage);
  note(lane, "SEND_ZC", page, pages, done);
  CHECK(done > 0 || done == -EAGAIN || done == -ENOBUFS);
  if (done > 0) append_cells(lane, stream, page * kCellsOfPage, (size_t)done);
}

static int ring_fixed(struct Ring* ring, bool reads, int file, char* at, size_t bytes, off_t offset) {
  unsigned* tail = ring_word(ring->sent, ring->about.sq_off.tail);
  unsigned index = *tail & (ring->about.sq_entries - 1);
  struct io_uring_sqe* entry = &ring->entries[index];
  memset(entry, 0, sizeof *entry);
  entry->opcode = reads ? IORING_OP_READ_FIXED : IORING_OP_WRITE_FIXED;
  entry->fd = file;
  entry->addr = (uintptr_t)at;
  entry->len = (unsigned)bytes;
  entry->off = (uint64_t)offset;
  ring_word(ring->sent, ring->about.sq_off.array)[index] = index;
  __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
  CHECK(syscall(SYS_io_uring_enter, ring->descriptor, 1, 0, 0, NULL, 0) == 1);
  int result = INT32_MIN;
  while (result == INT32_MIN) ring_take(ring, &result);
  return result;
}

static void unregister(struct Lane* lane, struct Ring* ring) {
  CHECK(syscall(SYS_io_uring_register, ring->descriptor, IORING_UNREGISTER_BUFFERS, NULL, 0) == 0);
  lane->registered.under_way = false;
  memset(lane->request.together, 0, sizeof lane->request.together);
  record(lane, "unregistered", lane->registered.cell, lane->registered.cells, 0);
}

static void register_pages(struct Lane* lane, struct Ring* ring) {
  int page = (int)draw(lane, kPages), pages = 1 + (int)draw(lane, kLongest);
  if (page + pages > kPages) pages = kPages - page;
  if (!all_have(lane, page, pages, PROT_READ | PROT_WRITE)) return;
  struct iovec buffer = {lane->memory + (size_t)page * kPage, (size_t)pages * kPage};
  long done = syscall(SYS_io_uring_register, ring->descriptor, IORING_REGISTER_BUFFERS, &buffer, 1);
  record(lane, "registered", page, pages, done);
  CHECK(done == 0);
  lane->registered = (struct Request){.under_way = true, .cell = page * kCellsOfPage, .cells = pages * kCellsOfPage};
}

// The file gets what the pages hold now: those that the program has given back as they were then.
static void write_registered(struct Lane* lane, struct Ring* ring, char* at, size_t bytes) {
  struct Request* registered = &lane->registered;
  off_t offset = (off_t)lane->number * kAll;
  int done = ring_fixed(ring, false, g_fixed, at, bytes, offset);
  record(lane, "WRITE_FIXED", registered->cell, registered->cells, done);
  CHECK(done == (int)bytes && pread(g_fixed, g_bytes, bytes, offset) == (ssize_t)bytes);
  static char expected[kCell];
  for (int i = 0; i < registered->cells; ++i) {
    uint64_t stamp = registered->dropped[i] ? registered->stamps[i] : lane->cells[registered->cell + i];
    fill_cell(stamp, expected);
    if (memcmp(expected, g_bytes + (size_t)i * kCell, kCell) != 0)
      wrong(lane, "what a registered buffer holds", registered->cell + i, stamp,
            stamp_of(g_bytes + (size_t)i * kCell));
  }
}

static void read_registered(struct Lane* lane, struct Ring* ring, char* at, size_t bytes) {
  struct Request* registered = &lane->registered;
  off_t offset = (off_t)lane->number * kAll;
  static uint64_t stamps[kLongest * kCellsOfPage];
  // Pages that are the program's no more are written, too, and others may hold those.
  receive_all(lane);
  for (int i = 0; i < registered->cells; ++i) {
    if (!registered->dropped[i]) make_room_for_version(lane, registered->cell + i);
    stamps[i] = new_stamp(lane);
    fill_cell(stamps[i], g_bytes + (size_t)i * kCell);
  }
  CHECK(pwrite(g_fixed, g_bytes, bytes, offset) == (ssize_t)bytes);
  int done = ring_fixed(ring, true, g_fixed, at, bytes, offset);
  record(lane, "READ_FIXED", registered->cell, registered->cells, done);
  CHECK(done == (int)bytes);
  for (int i = 0; i < registered->cells; ++i) {
    if (registered->dropped[i])
      registered->stamps[i] = stamps[i];
    else
      cell_written(lane, registered->cell + i, stamps[i]);
  }
}

void call_registered(struct Lane* lane) {
  unsigned number = lane->number * kRegistering / kLanes;
  if (!g_has_registered || lane->number * kRegistering % kLanes != 0) return;
  struct Ring* ring = &g_rings[number];
  if (!lane->registered.under_way) return register_pages(lane, ring);
  struct Request* registered = &lane->registered;
  int page = registered->cell / kCellsOfPage, pages = registered->cells / kCellsOfPage;
  char* at = lane->memory + (size_t)page * kPage;
  unsigned kind = draw(lane, 3);
  if (kind != 0 && is_busy(lane, page, pages)) return;
  if (kind == 0)
    unregister(lane, ring);
  else if (kind == 1)
    write_registered(lane, ring, at, (size_t)pages * kPage);
  else
    read_registered(lane, ring, at, (size_t)pages * kPage);
}

void end_requests(struct Lane* lane) {
  finish_request(lane);
  if (lane->registered.under_way) unregister(lane, &g_rings[lane->number * kRegistering / kLanes]);
}
