// What of a process's memory goes into its core file, and in what way.
#pragma once

#include <cstdint>
#include <vector>

#include "base/stats.hpp"
#include "cli/core/process_memory.hpp"
#include "cli/memory_map.hpp"

namespace hinterland::cli {

// How a range of a mapping is taken into the file.
enum class Take : std::uint8_t {
  absent,    // not in the file: reading it there is an error
  zeros,     // never touched: a hole in the file
  resident,  // the kernel has the bytes
  far,       // the runtime must bring them
};

struct Piece {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  Take take = Take::absent;
};

// What `hinterland core` knows of the runtime in the process, copied from its page of figures.
struct RuntimeView {
  std::uint64_t window_base = 0, window_bytes = 0, places_base = 0, places_bytes = 0, outside_chunks = 0,
                outside_bits = 0, page_words = 0, page_directory = 0, page_chunks = 0, page_marks = 0;
  std::int64_t inside_offset = 0;
  std::vector<std::int32_t> threads;
  bool managed = false;

  static RuntimeView of(const StatPage& page);
  // Far memory, in the window or outside. Before paging has begun the kernel knows all of a mapping by itself.
  bool is_paged(const Mapping& mapping, const ProcessMemory& memory) const;
  // The same of an address, whatever lies there.
  bool holds(std::uint64_t address, const ProcessMemory& memory) const;
};

// The pieces of one mapping, ascending, without gaps; neighbours differ. The process's threads are stopped.
std::vector<Piece> pieces_of(const Mapping& mapping, const RuntimeView& view, const ProcessMemory& memory,
                             int pagemap);

}  // namespace hinterland::cli
