// What the memory must hold. The shadow itself lies in private mappings of a memfd: far memory leaves those alone,
// and a forked child gets a copy of its own, as it does of the memory that is shadowed.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hinterland/region.h"
#include "pattern.hpp"

namespace churn {

inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t kCellsPerPage = kPageBytes / kCellBytes;
inline constexpr std::size_t kAreaBytesMax = 4u << 20;
inline constexpr std::size_t kAreaCellsMax = kAreaBytesMax / kCellBytes;
inline constexpr std::size_t kSmallBytesMax = 3000;
inline constexpr std::size_t kSmalls = 4096;  // small allocations of a thread

// `bytes` zeroed bytes for the shadow, for good. Exits when there are none.
void* shadow_memory(std::size_t bytes);

struct Note {  // something that was done to an area
  const char* what;
  std::uint32_t first_cell, cells;
  std::uint64_t operation;
};

struct Area {
  enum class Kind : std::uint8_t { none, mapping, heap, region };
  Kind kind;
  char* address;
  std::size_t bytes;
  hl_region region;  // of kind region
  Note notes[12];
  std::uint32_t noted;
  Stamp cells[kAreaCellsMax];

  std::size_t cell_count() const { return (bytes + kCellBytes - 1) / kCellBytes; }
  std::size_t page_count() const { return bytes / kPageBytes; }
  char* cell(std::size_t i) { return address + i * kCellBytes; }
  std::size_t cell_bytes(std::size_t i) const {
    return bytes - i * kCellBytes < kCellBytes ? bytes - i * kCellBytes : kCellBytes;
  }
  void note(const char* what, std::size_t first, std::size_t count, std::uint64_t operation) {
    notes[noted++ % std::size(notes)] = {what, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count),
                                         operation};
  }
};

struct Small {
  char* address;
  std::uint32_t bytes;
  Stamp stamp;
};

// What one thread owns. Only its thread changes it; a child, and whoever holds the gate alone, may read it.
struct ThreadShadow {
  std::size_t number;
  std::span<Area> areas;
  std::span<Small> smalls;
  std::span<std::uint64_t> tally;  // what this thread added to each counter
  std::size_t bytes_in_use;
  std::uint64_t operations;
  std::uint64_t refused;  // calls that the kernel may refuse, and did (mremap over two mappings, a taken hole)
};

// Counters shared by all threads, one a page, somewhere in it.
struct Counters {
  char* address;
  std::size_t count;
  std::atomic<std::uint64_t>& at(std::size_t i) const {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(address + i * kPageBytes + i * 64 % kPageBytes);
  }
};

struct Everything {
  std::uint64_t seed;
  std::size_t bytes_total;
  std::span<ThreadShadow> threads;
  Counters counters;
};

Everything make_everything(std::uint64_t seed, std::size_t bytes_total, std::size_t threads);

// Both print all that is known and end the process with status 1. Callable from any thread.
[[noreturn]] void fail_mismatch(const Everything& all, const ThreadShadow& thread, Area& area, std::size_t cell,
                                std::size_t offset, const char* when);
[[noreturn]] void fail(const Everything& all, const ThreadShadow& thread, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

// Every cell and small allocation of the thread is as its shadow says.
void verify_cells(const Everything& all, ThreadShadow& thread, Area& area, std::size_t first, std::size_t count,
                  const char* when);
// In a child: it is killed by SIGALRM when it makes no progress for two minutes.
void expect_progress();
void note_progress();

void verify_thread(const Everything& all, ThreadShadow& thread, const char* when);
// No addition was lost. Only while no other thread adds.
void verify_counters(const Everything& all, const ThreadShadow& thread, const char* when);

}  // namespace churn
