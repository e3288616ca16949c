// Shadow memory, verification, and what is printed when something is wrong.
#include "shadow.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace churn {

namespace {
// For one page to come, or one operation: much more than either takes on a machine that is busy with other things. A
// child as a whole looks at a gigabyte, and may take longer.
constexpr unsigned kSecondsWithoutProgress = 120;
bool g_expects_progress = false;
}  // namespace

void expect_progress() {
  g_expects_progress = true;
  note_progress();
}

void note_progress() {
  if (g_expects_progress) alarm(kSecondsWithoutProgress);
}

void* shadow_memory(std::size_t bytes) {
  int file = memfd_create("churn-shadow", MFD_CLOEXEC);
  void* memory = MAP_FAILED;
  if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0)
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  if (memory == MAP_FAILED) {
    std::perror("churn: no memory for the shadow");
    std::exit(2);
  }
  close(file);
  return memory;
}

namespace {

template <typename T>
std::span<T> shadow_array(std::size_t count) {
  return {static_cast<T*>(shadow_memory(count * sizeof(T))), count};
}

}  // namespace

Everything make_everything(std::uint64_t seed, std::size_t bytes_total, std::size_t threads) {
  Everything all{seed, bytes_total, shadow_array<ThreadShadow>(threads), {}};
  all.counters.count = std::max<std::size_t>(16, bytes_total / 16 / kPageBytes);
  void* memory =
      mmap(nullptr, all.counters.count * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("churn: no memory for the counters");
    std::exit(2);
  }
  all.counters.address = static_cast<char*>(memory);
  std::size_t areas = std::max<std::size_t>(16, bytes_total / threads / (256u << 10));
  for (std::size_t i = 0; i < threads; ++i) {
    ThreadShadow& thread = all.threads[i];
    thread.number = i;
    thread.areas = shadow_array<Area>(areas);
    thread.smalls = shadow_array<Small>(kSmalls);
    thread.tally = shadow_array<std::uint64_t>(all.counters.count);
  }
  return all;
}

namespace {

// Whose bytes these are, should they be somebody's.
const char* describe(const char* cell, std::size_t bytes, char* text, std::size_t size) {
  std::uint64_t first = 0;
  std::memcpy(&first, cell, std::min(bytes, sizeof first));
  Stamp stamp = static_cast<Stamp>(first >> 32);
  if (first_mismatch(cell, bytes, kZeros) == kNoMismatch)
    std::snprintf(text, size, "the whole cell is zeros");
  else if (stamp >= kFirstGenerated && first_mismatch(cell, bytes, stamp) == kNoMismatch)
    std::snprintf(text, size, "the whole cell is that of stamp %08x: an older version, or another place", stamp);
  else if (first_mismatch(cell, bytes, static_cast<unsigned char>(cell[0])) == kNoMismatch)
    std::snprintf(text, size, "the whole cell is byte %02x", static_cast<unsigned char>(cell[0]));
  else
    std::snprintf(text, size, "the cell is a mixture; its first word is %016" PRIx64, first);
  return text;
}

}  // namespace

void fail_mismatch(const Everything& all, const ThreadShadow& thread, Area& area, std::size_t cell,
                   std::size_t offset, const char* when) {
  static constexpr const char* kName[] = {"nothing", "mapping", "allocation", "region"};
  std::uint64_t found = 0;
  std::memcpy(&found, area.cell(cell) + offset, std::min(sizeof found, area.cell_bytes(cell) - offset));
  char text[160];
  Stamp stamp = area.cells[cell];
  dprintf(2,
          "churn: MISMATCH %s: seed %" PRIu64 ", process %d, thread %zu, operation %" PRIu64
          "\n  at %p: %s of %zu bytes at %p, page %zu, cell %zu, offset %zu in the cell\n  expected %016" PRIx64
          " (stamp %08x), found %016" PRIx64 "; %s\n",
          when, all.seed, getpid(), thread.number, thread.operations, static_cast<void*>(area.cell(cell) + offset),
          kName[static_cast<int>(area.kind)], area.bytes, static_cast<void*>(area.address), cell / kCellsPerPage,
          cell, offset, word_of(stamp, offset / 8), stamp, found,
          describe(area.cell(cell), area.cell_bytes(cell), text, sizeof text));
  std::size_t notes = std::min<std::size_t>(area.noted, std::size(area.notes));
  for (std::size_t i = 1; i <= notes; ++i) {
    const Note& note = area.notes[(area.noted - i) % std::size(area.notes)];
    dprintf(2, "  before: operation %" PRIu64 " %s, cells %u to %u\n", note.operation, note.what, note.first_cell,
            note.first_cell + note.cells);
  }
  _exit(1);
}

void fail(const Everything& all, const ThreadShadow& thread, const char* format, ...) {
  int error = errno;
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  dprintf(2, "churn: FAILED: %s (errno %d): seed %" PRIu64 ", process %d, thread %zu, operation %" PRIu64 "\n", text,
          error, all.seed, getpid(), thread.number, thread.operations);
  _exit(1);
}

void verify_cells(const Everything& all, ThreadShadow& thread, Area& area, std::size_t first, std::size_t count,
                  const char* when) {
  for (std::size_t i = first; i < first + count; ++i) {
    if (i % kCellsPerPage == 0) note_progress();
    if (area.cells[i] == kHole) continue;
    std::size_t wrong = first_mismatch(area.cell(i), area.cell_bytes(i), area.cells[i]);
    if (wrong != kNoMismatch) fail_mismatch(all, thread, area, i, wrong, when);
  }
}

void verify_thread(const Everything& all, ThreadShadow& thread, const char* when) {
  for (Area& area : thread.areas)
    if (area.kind != Area::Kind::none) verify_cells(all, thread, area, 0, area.cell_count(), when);
  for (const Small& small : thread.smalls) {
    if (small.address == nullptr) continue;
    std::size_t wrong = first_mismatch(small.address, small.bytes, small.stamp);
    if (wrong != kNoMismatch)
      fail(all, thread, "MISMATCH %s: allocation of %u bytes at %p, stamp %08x, wrong at byte %zu", when, small.bytes,
           static_cast<void*>(small.address), small.stamp, wrong);
  }
}

void verify_counters(const Everything& all, const ThreadShadow& thread, const char* when) {
  for (std::size_t i = 0; i < all.counters.count; ++i) {
    std::uint64_t sum = 0;
    for (const ThreadShadow& each : all.threads) sum += each.tally[i];
    // seq_cst load: cold path, nothing to gain from less
    std::uint64_t found = all.counters.at(i).load();
    if (found != sum)
      fail(all, thread, "MISMATCH %s: counter %zu at %p is %" PRIu64 ", the threads added %" PRIu64, when, i,
           static_cast<void*>(&all.counters.at(i)), found, sum);
  }
}

}  // namespace churn
