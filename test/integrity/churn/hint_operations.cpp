// Hints of every kind, right and wrong: whatever they say, no byte changes.
#include <hinterland/hint.hpp>

#include <cerrno>
#include <cstring>

#include "worker.hpp"

namespace churn {

// An address in this thread's memory, in memory that another thread maps and unmaps at this moment, or anywhere.
const char* Worker::somewhere() {
  ThreadShadow& whose = random_.one_in(3) ? all_.threads[random_.below(all_.threads.size())] : mine_;
  // volatile: its owner may be writing it; any value will do
  const Area& area = whose.areas[random_.below(whose.areas.size())];
  const char* address = *const_cast<char* const volatile*>(&area.address);
  if (random_.one_in(16)) return reinterpret_cast<const char*>(random_.next());
  return address + static_cast<std::ptrdiff_t>(random_.below(kAreaBytesMax)) - 8192;
}

void Worker::hint() {
  const char* address = somewhere();
  std::size_t size = random_.one_in(16) ? random_.next() : random_.below(std::size_t{1} << (1 + random_.below(20)));
  auto ahead = random_.one_in(2) ? static_cast<std::int32_t>(random_.below(256)) - 128 : 0;
  errno = EXDEV;
  switch (random_.below(12)) {
    case 0:
      hl::seq_read(address);
      break;
    case 1:
      for (std::size_t at = 0; at < 64 * 4096; at += 4096) hl::seq_write(address + at);
      break;
    case 2:
      hl::hint(address, {.mut = true, .size = size, .rdahead = ahead, .ev_prio = 15});
      break;
    case 3:
      hl::hint(address, {.size = size, .rdahead = ahead, .seq = true});
      break;
    case 4:
      hl::read(address);
      break;
    case 5:
      hl::write(address);
      break;
    case 6:
    case 7:
      hl::prefetch(address, size);  // and nobody waits for it
      break;
    case 8:
      hl::cold(address, size);
      break;
    default:
      hl::hint(address, {.mut = random_.one_in(2), .size = size, .rdahead = ahead});
  }
  if (errno != EXDEV) fail(all_, mine_, "a hint changed errno to %d", errno);
}

// Reads what it pinned, once or twice, while others press for memory.
void Worker::pin() {
  Span span = random_span(random_.one_in(16) ? kAreaBytesMax : 256u << 10);
  if (!span) return;
  int pins = 0;
  for (int most = random_.one_in(4) ? 2 : 1; pins < most; ++pins) {
    int error = hl_pin(span.address(), span.bytes());
    if (error == ENOMEM) break;  // more than half of the budget
    if (error != 0) fail(all_, mine_, "hl_pin of %zu bytes at %p: %d", span.bytes(), span.address(), error);
  }
  verify_cells(all_, mine_, *span.area, span.first, span.count, "while pinned");
  for (; pins > 0; --pins)
    if (hl_unpin(span.address(), span.bytes()) != 0) fail(all_, mine_, "hl_unpin");
}

// Memory that its owner may unmap at this moment, or that was never there.
void Worker::pin_others() {
  const char* address = somewhere();
  std::size_t size = random_.one_in(16) ? random_.next() : random_.up_to(64u << 10);
  int error = hl_pin(address, size);
  if (error == 0 && hl_unpin(address, size) != 0) fail(all_, mine_, "hl_unpin of others' memory");
  if (error != 0 && error != ENOMEM && error != EFAULT) fail(all_, mine_, "hl_pin of others' memory: %d", error);
}

// Until they are written again, the words of the pages within are as they were, or zeros; those outside as they were.
void Worker::discard() {
  Span span = random_span(kAreaBytesMax);
  if (!span) return;
  Area& area = *span.area;
  int error = hl_discard(span.address(), span.bytes());
  if (error != 0) fail(all_, mine_, "hl_discard of %zu bytes at %p: %d", span.bytes(), span.address(), error);
  auto first = reinterpret_cast<std::uintptr_t>(span.address());
  std::uintptr_t end = (first + span.bytes()) / kPageBytes * kPageBytes;
  first = (first + kPageBytes - 1) / kPageBytes * kPageBytes;
  for (std::size_t i = span.first; i < span.first + span.count; ++i)
    for (std::size_t word = 0; word < kCellBytes / sizeof(std::uint64_t); ++word) {
      const char* at = area.cell(i) + word * sizeof(std::uint64_t);
      auto address = reinterpret_cast<std::uintptr_t>(at);
      std::uint64_t found;
      std::memcpy(&found, at, sizeof found);
      if (found == word_of(area.cells[i], word) || (found == 0 && first <= address && address < end)) continue;
      fail_mismatch(all_, mine_, area, i, word * sizeof found, "after hl_discard");
    }
  write_new(area, span.first, span.count);
  note(span, "discard");
}

// Pages that hints have just asked for are unmapped, moved, dropped, protected.
void Worker::change_what_comes() {
  Area* area = whole_mapping();
  if (area == nullptr) return;
  std::size_t at = random_.below(area->bytes);
  hl::prefetch(area->address + at, random_.up_to(area->bytes));
  if (random_.one_in(2)) hl::hint(area->address + at, {.mut = true, .rdahead = 64});
  switch (random_.below(5)) {
    case 0:
      return punch(*area);
    case 1:
      return remap(*area);
    case 2:
      return flip_protection(*area);
    case 3:
      return release_area(*area);
    default:
      return drop_pages(*area);
  }
}

}  // namespace churn
