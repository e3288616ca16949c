// Calls on memory, all by syscall(2), and what is read and written by the kernel and by the program.
#include "held.h"

#include <sys/uio.h>

static bool g_has_keys;
static int g_source, g_target, g_self;  // files of each lane's share, kAll bytes; this process
static char g_bytes[kAll];              // not far

void open_memory(void) {
  g_source = memfd_create("source", MFD_CLOEXEC);
  g_target = memfd_create("target", MFD_CLOEXEC);
  long key = syscall(SYS_pkey_alloc, 0, 1 /* PKEY_DISABLE_ACCESS */);
  g_has_keys = key >= 0;
  if (g_has_keys) syscall(SYS_pkey_free, key);
  g_self = (int)syscall(SYS_pidfd_open, getpid(), 0);
  CHECK(g_source >= 0 && g_target >= 0 && g_self >= 0);
  CHECK(ftruncate(g_source, (off_t)kLanes * kAll) == 0 && ftruncate(g_target, (off_t)kLanes * kAll) == 0);
}

struct Range {
  int page, pages;
  char* at;
  size_t bytes;
};

static struct Range draw_range(struct Lane* lane, int longest) {
  int page = (int)draw(lane, kPages), pages = 1 + (int)draw(lane, (unsigned)longest);
  if (page + pages > kPages) pages = kPages - page;
  return (struct Range){page, pages, lane->memory + (size_t)page * kPage, (size_t)pages * kPage};
}

static void pages_dropped(struct Lane* lane, int page, int pages) {
  for (int cell = page * kCellsOfPage; cell < (page + pages) * kCellsOfPage; ++cell) cell_dropped(lane, cell);
}

void call_map(struct Lane* lane) {
  struct Range range = draw_range(lane, kLongest);
  int protection = chance(lane, 85) ? PROT_READ | PROT_WRITE : PROT_READ;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (chance(lane, 80) ? MAP_FIXED : MAP_FIXED_NOREPLACE);
  if (chance(lane, 10)) flags |= MAP_POPULATE;
  long made = syscall(SYS_mmap, range.at, range.bytes, protection, flags, -1, 0);
  record(lane, "mmap", range.page, range.pages, made == -1 ? -errno : made == (long)range.at);
  if (made == -1) return;
  pages_dropped(lane, range.page, range.pages);
  ++lane->next_mapping;
  for (int i = range.page; i < range.page + range.pages; ++i) {
    lane->protection[i] = protection;
    lane->mapping[i] = lane->next_mapping;
  }
}

void call_unmap(struct Lane* lane) {
  struct Range range = draw_range(lane, kLongest / 2);
  record(lane, "munmap", range.page, range.pages, syscall(SYS_munmap, range.at, range.bytes));
  pages_dropped(lane, range.page, range.pages);
  for (int i = range.page; i < range.page + range.pages; ++i) lane->protection[i] = -1;
}

static bool is_one_mapping(const struct Lane* lane, int page, int pages) {
  for (int i = page; i < page + pages; ++i)
    if (lane->protection[i] < 0 || lane->protection[i] != lane->protection[page] ||
        lane->mapping[i] != lane->mapping[page])
      return false;
  return true;
}

static bool is_registered(const struct Lane* lane, int page, int pages) {
  return lane->registered.under_way && lane->registered.cell < (page + pages) * kCellsOfPage &&
         page * kCellsOfPage < lane->registered.cell + lane->registered.cells;
}

void call_remap(struct Lane* lane) {
  struct Range from = draw_range(lane, kLongest / 2);
  int page = (int)draw(lane, (unsigned)(kPages - from.pages + 1));
  bool keep = chance(lane, 25);
  if (page < from.page + from.pages && from.page < page + from.pages) return;
  if (!is_one_mapping(lane, from.page, from.pages) || is_busy(lane, from.page, from.pages) ||
      is_registered(lane, from.page, from.pages))
    return;
  char* to = lane->memory + (size_t)page * kPage;
  int flags = MREMAP_MAYMOVE | MREMAP_FIXED | (keep ? 4 /* MREMAP_DONTUNMAP */ : 0);
  long moved = syscall(SYS_mremap, from.at, from.bytes, from.bytes, flags, to);
  record(lane, keep ? "mremap, kept" : "mremap", from.page * 100 + from.pages, page,
         moved == -1 ? -errno : moved == (long)to);
  if (moved == -1) return;
  ++lane->next_mapping;
  for (int i = 0; i < from.pages; ++i) {
    for (int cell = 0; cell < kCellsOfPage; ++cell)
      cell_moved(lane, (from.page + i) * kCellsOfPage + cell, (page + i) * kCellsOfPage + cell);
    lane->protection[page + i] = lane->protection[from.page + i];
    lane->mapping[page + i] = lane->next_mapping;
    if (!keep) lane->protection[from.page + i] = -1;
  }
}

void call_protect(struct Lane* lane) {
  static const int kinds[] = {PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ,
                              PROT_NONE};
  struct Range range = draw_range(lane, kLongest);
  int protection = kinds[draw(lane, 5)];
  // Without protection keys such pages leave by copy (ADR 0057): what the kernel still writes to them is lost.
  if (protection == PROT_NONE && !g_has_keys && is_registered(lane, range.page, range.pages)) protection = PROT_READ;
  long result = syscall(SYS_mprotect, range.at, range.bytes, protection);
  record(lane, "mprotect", range.page * 100 + range.pages, protection, result == -1 ? -errno : result);
  // Up to the first hole it is done.
  for (int i = range.page; i < range.page + range.pages && lane->protection[i] >= 0; ++i)
    lane->protection[i] = protection;
}

void call_advise(struct Lane* lane) {
  static const int advices[] = {MADV_DONTNEED, MADV_DONTNEED,      MADV_DONTNEED,       MADV_WILLNEED,  MADV_COLD,
                                MADV_PAGEOUT,  MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_NOHUGEPAGE};
  struct Range range = draw_range(lane, kLongest);
  int advice = advices[draw(lane, sizeof advices / sizeof *advices)];
  long result = syscall(SYS_madvise, range.at, range.bytes, advice);
  record(lane, "madvise", range.page * 100 + range.pages, advice, result == -1 ? -errno : result);
  for (int i = range.page; advice == MADV_DONTNEED && i < range.page + range.pages; ++i)
    if (lane->protection[i] >= 0) pages_dropped(lane, i, 1);
}

// Of a few pieces of mapped memory.
void call_process_advise(struct Lane* lane) {
  struct iovec parts[6];
  int first[6], count = 0;
  for (int i = 0; i < 6; ++i) {
    struct Range range = draw_range(lane, 4);
    if (!all_have(lane, range.page, range.pages, 0)) continue;
    first[count] = range.page;
    parts[count++] = (struct iovec){range.at, range.bytes};
  }
  int advice = chance(lane, 70) ? MADV_DONTNEED : MADV_COLD;
  if (count == 0) return;
  long done = syscall(SYS_process_madvise, g_self, parts, count, advice, 0);
  record(lane, "process_madvise", count, advice, done == -1 ? -errno : done);
  for (int i = 0; done > 0 && advice == MADV_DONTNEED && i < count; ++i)
    pages_dropped(lane, first[i], (int)(parts[i].iov_len / kPage));
}

void call_store(struct Lane* lane) {
  struct Range range = draw_range(lane, 6);
  int step = chance(lane, 60) ? 1 : kCellsOfPage;
  if (!all_have(lane, range.page, range.pages, PROT_WRITE) || is_busy(lane, range.page, range.pages)) return;
  int end = (range.page + range.pages) * kCellsOfPage;
  for (int cell = range.page * kCellsOfPage; cell < end; cell += step) {
    make_room_for_version(lane, cell);
    uint64_t stamp = new_stamp(lane);
    cell_written(lane, cell, stamp);
    fill_cell(stamp, lane->memory + (size_t)cell * kCell);
  }
  record(lane, "store", range.page, range.pages, 0);
}

// Into memory, by the kernel: whole pages or a few cells, in one piece or two.
void call_read(struct Lane* lane) {
  struct Range range = draw_range(lane, kLongest);
  if (is_busy(lane, range.page, range.pages)) return;
  int cell = range.page * kCellsOfPage, cells = range.pages * kCellsOfPage;
  if (chance(lane, 30)) {
    cell += (int)draw(lane, kCellsOfPage);
    cells = 1 + (int)draw(lane, (unsigned)(kCells - cell > 12 ? 12 : kCells - cell));
    if (is_busy(lane, cell / kCellsOfPage, (cell + cells - 1) / kCellsOfPage - cell / kCellsOfPage + 1)) return;
  }
  uint64_t first = lane->next_stamp + 1;
  for (int i = 0; i < cells; ++i) fill_cell(new_stamp(lane), g_bytes + (size_t)i * kCell);
  for (int i = 0; i < cells; ++i) make_room_for_version(lane, cell + i);
  size_t bytes = (size_t)cells * kCell;
  off_t at = (off_t)lane->number * kAll;
  CHECK(pwrite(g_source, g_bytes, bytes, at) == (ssize_t)bytes);
  char* to = lane->memory + (size_t)cell * kCell;
  size_t half = bytes / 2 / kCell * kCell;
  struct iovec parts[2] = {{to, half}, {to + half, bytes - half}};
  long done = -1;
  if (chance(lane, 50)) {
    done = syscall(SYS_pread64, g_source, to, bytes, at);
  } else if (chance(lane, 50)) {
    done = syscall(SYS_preadv, g_source, parts, 2, at, 0);
  } else {
    CHECK(lseek(g_source, at, SEEK_SET) == at);
    done = syscall(SYS_read, g_source, to, bytes);
  }
  record(lane, "read", cell, cells, done == -1 ? -errno : done);
  if (done > 0 && done % kCell != 0) wrong(lane, "read: a part of a cell", cell, 0, (uint64_t)done);
  uint64_t base = new_stamp(lane) - lane->next_stamp;
  for (int i = 0; i < done / kCell; ++i) cell_written(lane, cell + i, base + first + (uint64_t)i);
}

// Out of memory, by the kernel.
void call_write(struct Lane* lane) {
  struct Range range = draw_range(lane, kLongest);
  if (is_busy(lane, range.page, range.pages)) return;
  int cell = range.page * kCellsOfPage, cells = range.pages * kCellsOfPage;
  off_t at = (off_t)lane->number * kAll;
  size_t half = range.bytes / 2 / kPage * kPage;
  struct iovec parts[2] = {{range.at, half}, {range.at + half, range.bytes - half}};
  long done = -1;
  switch (draw(lane, 3)) {
    case 0:
      done = syscall(SYS_pwrite64, g_target, range.at, range.bytes, at);
      break;
    case 1:
      done = syscall(SYS_pwritev, g_target, parts, 2, at, 0);
      break;
    default: {
      struct iovec whole = {g_bytes, range.bytes};
      done = syscall(SYS_process_vm_readv, getpid(), &whole, 1, parts, 2, 0);
    }
      record(lane, "process_vm_readv", cell, cells, done == -1 ? -errno : done);
      if (done > 0) check_cells(lane, "process_vm_readv", g_bytes, cell, (int)(done / kCell));
      return;
  }
  record(lane, "write", cell, cells, done == -1 ? -errno : done);
  if (done <= 0) return;
  CHECK(pread(g_target, g_bytes, (size_t)done, at) == done);
  check_cells(lane, "write", g_bytes, cell, (int)(done / kCell));
}
