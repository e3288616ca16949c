// Operations of the malloc family, and the turnover of areas.
#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "worker.hpp"

namespace churn {

void Worker::allocate_area(Area& area, std::size_t bytes) {
  std::size_t alignment = std::size_t{1} << (4 + random_.below(14));
  void* memory = nullptr;
  bool zeroed = false;
  switch (random_.below(4)) {
    case 0:
      memory = std::calloc(bytes, 1);
      zeroed = true;
      break;
    case 1:
      if (posix_memalign(&memory, alignment, bytes) != 0) memory = nullptr;
      break;
    case 2:
      bytes = (bytes + alignment - 1) / alignment * alignment;
      bytes = std::min(bytes, kAreaBytesMax);
      memory = std::aligned_alloc(alignment, bytes);
      break;
    default:
      memory = std::malloc(bytes);
      alignment = alignof(std::max_align_t);
  }
  if (memory == nullptr) fail(all_, mine_, "allocation of %zu bytes", bytes);
  if (!zeroed && reinterpret_cast<std::uintptr_t>(memory) % alignment != 0)
    fail(all_, mine_, "allocation at %p is not aligned to %zu", memory, alignment);
  if (malloc_usable_size(memory) < bytes)
    fail(all_, mine_, "allocation at %p has less than %zu bytes", memory, bytes);
  area.kind = Area::Kind::heap;
  area.address = static_cast<char*>(memory);
  area.bytes = bytes;
  std::fill_n(area.cells, area.cell_count(), kZeros);
  if (!zeroed) write_new(area, 0, area.cell_count());
  area.note(zeroed ? "calloc" : "malloc", 0, area.cell_count(), mine_.operations);
  if (zeroed && random_.one_in(2)) verify_cells(all_, mine_, area, 0, area.cell_count(), "after calloc");
}

void Worker::release_area(Area& area) {
  if (area.kind == Area::Kind::heap)
    std::free(area.address);
  else if (area.kind == Area::Kind::region)
    destroy_region(area);
  else
    unmap_area(area);
  mine_.bytes_in_use -= area.bytes;
  area.kind = Area::Kind::none;
  area.noted = 0;
}

void Worker::replace_area() {
  Area& area = mine_.areas[random_.below(mine_.areas.size())];
  if (area.kind != Area::Kind::none) {
    if (random_.one_in(4)) verify_cells(all_, mine_, area, 0, area.cell_count(), "before it is released");
    release_area(area);
  }
  make_area(area);
}

void Worker::make_area(Area& area) {
  std::size_t pages = std::min(random_.up_to(kAreaBytesMax / kPageBytes), room_bytes() / kPageBytes);
  if (pages == 0) return;
  if (random_.one_in(2))
    map_area(area, pages * kPageBytes);
  else if (random_.one_in(4))
    create_region(area, pages * kPageBytes - random_.below(kPageBytes - kCellBytes));
  else
    allocate_area(area, pages * kPageBytes - random_.below(kPageBytes - kCellBytes));
  mine_.bytes_in_use += area.bytes;
}

void Worker::reallocate() {
  Area* area = random_area(Area::Kind::heap);
  if (area == nullptr) return;
  std::size_t before = area->bytes;
  std::size_t bytes = std::min(kCellBytes + random_.up_to(kAreaBytesMax - kCellBytes), before + room_bytes());
  void* memory = std::realloc(area->address, bytes);
  if (memory == nullptr) fail(all_, mine_, "realloc from %zu to %zu bytes", before, bytes);
  area->address = static_cast<char*>(memory);
  area->bytes = std::min(before, bytes);
  verify_cells(all_, mine_, *area, 0, area->cell_count(), "after realloc");
  area->bytes = bytes;
  mine_.bytes_in_use += bytes - before;
  if (bytes > before) {
    std::size_t first = before / kCellBytes;  // with the cell that was cut short
    write_new(*area, first, area->cell_count() - first);
  }
  area->note("realloc", 0, area->cell_count(), mine_.operations);
}

void Worker::small_allocations() {
  for (int i = 0; i < 16; ++i) {
    Small& small = mine_.smalls[random_.below(mine_.smalls.size())];
    std::uint32_t bytes = static_cast<std::uint32_t>(random_.up_to(kSmallBytesMax));
    std::uint32_t kept = std::min(small.bytes, bytes);
    bool resized = small.address != nullptr && random_.one_in(3);
    char* memory = static_cast<char*>(resized ? std::realloc(small.address, bytes) : small.address);
    if (memory != nullptr && first_mismatch(memory, resized ? kept : small.bytes, small.stamp) != kNoMismatch)
      fail(all_, mine_, "MISMATCH in an allocation of %u bytes at %p, stamp %08x, resized to %u: %d", small.bytes,
           static_cast<void*>(memory), small.stamp, bytes, resized);
    if (!resized) {
      std::free(memory);
      memory = static_cast<char*>(random_.one_in(4) ? nullptr : std::malloc(bytes));
    }
    small = {memory, memory != nullptr ? bytes : 0, new_stamp(random_)};
    if (memory != nullptr) fill(memory, bytes, small.stamp);
  }
}

}  // namespace churn
