// Hints of every kind, right and wrong: whatever they say, no byte changes.
#include <hinterland/hint.hpp>

#include <cerrno>

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

// Reads what it pinned, while others press for memory.
void Worker::pin() {
  Span span = random_span(256u << 10);
  if (!span) return;
  int error = hl_pin(span.address(), span.bytes());
  if (error == ENOMEM) return;  // more than half of the budget
  if (error != 0) fail(all_, mine_, "hl_pin of %zu bytes at %p: %d", span.bytes(), span.address(), error);
  verify_cells(all_, mine_, *span.area, span.first, span.count, "while pinned");
  if (hl_unpin(span.address(), span.bytes()) != 0) fail(all_, mine_, "hl_unpin");
}

}  // namespace churn
