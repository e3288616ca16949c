// Operations on mappings: mmap, partial munmap, mremap, mprotect, madvise.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "worker.hpp"

namespace churn {

namespace {
constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS;
constexpr std::size_t kPagesMax = 256;

bool has_hole(const Area& area) {
  return std::find(area.cells, area.cells + area.cell_count(), kHole) != area.cells + area.cell_count();
}
}  // namespace

int Worker::place_flag() { return random_.below(100) < chances_.low_percent ? MAP_32BIT : 0; }

void Worker::map_area(Area& area, std::size_t bytes) {
  void* memory = nullptr;
  const int kind = kPrivate | place_flag();
  switch (random_.below(4)) {
    case 0:  // reserved, then committed
      memory = mmap(nullptr, bytes, PROT_NONE, kind | MAP_NORESERVE, -1, 0);
      if (memory != MAP_FAILED && mprotect(memory, bytes, kReadWrite) != 0) fail(all_, mine_, "mprotect to commit");
      break;
    case 1:  // reserved, then replaced
      memory = mmap(nullptr, bytes, PROT_NONE, kind, -1, 0);
      if (memory != MAP_FAILED) memory = mmap(memory, bytes, kReadWrite, kPrivate | MAP_FIXED, -1, 0);
      break;
    default:
      memory = mmap(nullptr, bytes, kReadWrite, kind | (random_.one_in(8) ? MAP_POPULATE : 0), -1, 0);
  }
  if (memory == MAP_FAILED) fail(all_, mine_, "mmap of %zu bytes", bytes);
  area.kind = Area::Kind::mapping;
  area.address = static_cast<char*>(memory);
  area.bytes = bytes;
  std::fill_n(area.cells, area.cell_count(), kZeros);
  area.note("mmap", 0, area.cell_count(), mine_.operations);
}

void Worker::unmap_area(Area& area) {
  // Holes may be somebody else's by now: only what is ours is unmapped.
  std::size_t pages = area.page_count();
  for (std::size_t first = 0; first < pages;) {
    bool hole = area.cells[first * kCellsPerPage] == kHole;
    std::size_t end = first;
    while (end < pages && (area.cells[end * kCellsPerPage] == kHole) == hole) ++end;
    if (!hole && munmap(area.address + first * kPageBytes, (end - first) * kPageBytes) != 0)
      fail(all_, mine_, "munmap of %zu pages at %p", end - first,
           static_cast<void*>(area.address + first * kPageBytes));
    first = end;
  }
}

Area* Worker::whole_mapping() {
  Area* area = random_area(Area::Kind::mapping);
  return area != nullptr && !has_hole(*area) ? area : nullptr;
}

void Worker::drop_pages() {
  if (Area* area = whole_mapping()) drop_pages(*area);
}

void Worker::drop_pages(Area& area) {
  Span span = random_pages(area, kPagesMax);
  bool lazily = random_.one_in(4);
  if (madvise(span.address(), span.bytes(), lazily ? MADV_FREE : MADV_DONTNEED) != 0) fail(all_, mine_, "madvise");
  std::fill_n(area.cells + span.first, span.count, kZeros);
  note(span, lazily ? "madvise FREE" : "madvise DONTNEED");
  if (lazily)
    write_new(area, span.first, span.count);  // until written, old bytes or zeros: both are right
  else if (random_.one_in(2))
    verify_cells(all_, mine_, area, span.first, span.count, "after madvise DONTNEED");
}

void Worker::punch_or_mend() {
  Area* area = random_area(Area::Kind::mapping);
  if (area == nullptr) return;
  if (has_hole(*area))
    mend(*area);
  else
    punch(*area);
}

void Worker::punch(Area& area) {
  Span span = random_pages(area, kPagesMax);
  if (munmap(span.address(), span.bytes()) != 0) fail(all_, mine_, "munmap of %zu bytes", span.bytes());
  std::fill_n(area.cells + span.first, span.count, kHole);
  note(span, "munmap");
}

void Worker::mend(Area& area) {
  std::size_t first = 0, pages = area.page_count();
  while (area.cells[first * kCellsPerPage] != kHole) ++first;
  std::size_t end = first;
  while (end < pages && area.cells[end * kCellsPerPage] == kHole) ++end;
  char* address = area.address + first * kPageBytes;
  std::size_t bytes = (end - first) * kPageBytes;
  void* memory = mmap(address, bytes, kReadWrite, kPrivate | MAP_FIXED_NOREPLACE, -1, 0);
  if (memory == MAP_FAILED && errno == EEXIST) {
    ++mine_.refused;  // another thread was given the place
    return;
  }
  if (memory != address)
    fail(all_, mine_, "mmap of %zu bytes at %p gave %p", bytes, static_cast<void*>(address), memory);
  Span span{&area, first * kCellsPerPage, (end - first) * kCellsPerPage};
  std::fill_n(area.cells + span.first, span.count, kZeros);
  note(span, "mmap into the hole");
  if (random_.one_in(2)) verify_cells(all_, mine_, area, span.first, span.count, "after mmap into the hole");
}

void Worker::remap() {
  if (Area* area = whole_mapping()) remap(*area);
}

void Worker::remap(Area& area) {
  std::size_t before = area.bytes, cells = area.cell_count();
  std::size_t most = std::min(kAreaBytesMax, before + room_bytes() / kPageBytes * kPageBytes);
  std::size_t bytes = random_.one_in(3) ? before : random_.up_to(most / kPageBytes) * kPageBytes;
  if (!remap_to(area, bytes, random_.one_in(3))) {
    ++mine_.refused;  // not one mapping, after holes were mended
    return;
  }
  mine_.bytes_in_use += bytes - before;
  area.bytes = bytes;
  if (area.cell_count() > cells) std::fill(area.cells + cells, area.cells + area.cell_count(), kZeros);
  area.note(bytes > before ? "mremap, grown" : "mremap", 0, area.cell_count(), mine_.operations);
  if (random_.one_in(2)) verify_cells(all_, mine_, area, 0, area.cell_count(), "after mremap");
}

bool Worker::remap_to(Area& area, std::size_t bytes, bool elsewhere) {
  void* target = nullptr;
  if (elsewhere) {
    target = mmap(nullptr, bytes, PROT_NONE, kPrivate | MAP_NORESERVE | place_flag(), -1, 0);
    if (target == MAP_FAILED) fail(all_, mine_, "mmap of a target for mremap");
  }
  void* moved = elsewhere ? mremap(area.address, area.bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, target)
                          : mremap(area.address, area.bytes, bytes, MREMAP_MAYMOVE);
  if (moved == MAP_FAILED && errno != EFAULT) fail(all_, mine_, "mremap from %zu to %zu bytes", area.bytes, bytes);
  // The kernel may have unmapped the target before it refused, and another thread may have been given the place: so
  // the target is not unmapped here, and costs address space at most.
  if (moved == MAP_FAILED) return false;
  if (elsewhere && moved != target) fail(all_, mine_, "mremap to %p gave %p", target, moved);
  area.address = static_cast<char*>(moved);
  return true;
}

void Worker::flip_protection() {
  if (Area* area = whole_mapping()) flip_protection(*area);
}

void Worker::flip_protection(Area& area) {
  Span span = random_pages(area, 64);
  bool readable = random_.one_in(2);
  if (mprotect(span.address(), span.bytes(), readable ? PROT_READ : PROT_NONE) != 0) fail(all_, mine_, "mprotect");
  if (readable) verify_cells(all_, mine_, area, span.first, span.count, "reading what is read-only");
  // The kernel must refuse what the program may not do.
  ssize_t done = readable ? pread(file_, span.address(), 1, 0) : pwrite(file_, span.address(), 1, 0);
  if (done > 0 || (done < 0 && errno != EFAULT))
    fail(all_, mine_, "%s memory at %p was accepted by the kernel (%zd)", readable ? "read-only" : "inaccessible",
         static_cast<void*>(span.address()), done);
  if (mprotect(span.address(), span.bytes(), kReadWrite) != 0) fail(all_, mine_, "mprotect back");
  note(span, readable ? "mprotect read-only and back" : "mprotect none and back");
  if (random_.one_in(2)) verify_cells(all_, mine_, area, span.first, span.count, "after mprotect");
}

}  // namespace churn
