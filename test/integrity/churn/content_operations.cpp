// Operations on the contents: reads, writes, memset, memcpy, atomics.
#include <algorithm>
#include <cstring>

#include "worker.hpp"

namespace churn {

namespace {
constexpr std::size_t kSpanBytesMax = 256u << 10;
constexpr std::uint64_t kAdditionMax = 1000;
}  // namespace

void Worker::read_cells() {
  if (Span span = random_span(64u << 10)) verify_cells(all_, mine_, *span.area, span.first, span.count, "reading");
}

void Worker::write_cells() {
  Span span = random_span(64u << 10);
  if (!span) return;
  if (random_.one_in(2)) verify_cells(all_, mine_, *span.area, span.first, span.count, "before writing");
  write_new(*span.area, span.first, span.count);
  note(span, "write");
}

void Worker::set_span() {
  Span span = random_span(kSpanBytesMax);
  if (!span) return;
  Stamp byte = static_cast<Stamp>(random_.below(kFirstGenerated));
  std::memset(span.address(), static_cast<int>(byte), span.bytes());
  std::fill_n(span.area->cells + span.first, span.count, byte);
  note(span, "memset");
}

// The bytes of `from` were carried to `to`, which is as long.
void Worker::copied(Span from, Span to, const char* what) {
  std::memmove(to.area->cells + to.first, from.area->cells + from.first, to.count * sizeof(Stamp));
  note(to, what);
  if (random_.one_in(2)) verify_cells(all_, mine_, *to.area, to.first, to.count, what);
}

void Worker::copy_span() {
  Span from = random_span(kSpanBytesMax), to = random_span(kSpanBytesMax);
  if (!from || !to || !intact(from)) return;
  from.count = to.count = std::min(from.count, to.count);
  std::memmove(to.address(), from.address(), to.bytes());
  copied(from, to, "memmove");
}

void Worker::add_to_counters() {
  for (int i = 0; i < 8; ++i) {
    std::size_t which = random_.below(all_.counters.count);
    std::uint64_t amount = 1 + random_.below(kAdditionMax);
    // relaxed: nothing but the sum is relied on
    std::uint64_t before = all_.counters.at(which).fetch_add(amount, std::memory_order_relaxed);
    if (before < mine_.tally[which])
      fail(all_, mine_, "MISMATCH counter %zu at %p is %lu, this thread alone added %lu", which,
           static_cast<void*>(&all_.counters.at(which)), before, mine_.tally[which]);
    mine_.tally[which] += amount;
  }
}

void Worker::verify_area() {
  if (Area* area = random_area()) verify_cells(all_, mine_, *area, 0, area->cell_count(), "sweeping");
}

}  // namespace churn
