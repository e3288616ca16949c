// Writes an ELF core file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/core/process_memory.hpp"
#include "cli/core/segments.hpp"

namespace hinterland::cli {

struct CoreContents {
  std::uint64_t bytes = 0;         // of memory in the file, holes for untouched pages included
  std::uint64_t far_bytes = 0;     // of these, brought by the runtime
  std::uint64_t absent_bytes = 0;  // should have been there, and could not be had
};

class CoreFile {
 public:
  // Takes the descriptor of an empty file. The memory is read while mappings are added.
  CoreFile(int descriptor, ProcessMemory& memory) : file_(descriptor), memory_(memory) {}

  Status add(const Mapping& mapping, const std::vector<Piece>& pieces);
  // Notes and headers: only now is it known what could be read.
  Status finish(const std::string& notes);
  const CoreContents& contents() const { return contents_; }

 private:
  struct Segment {
    std::uint64_t start, end, offset;
    std::uint32_t permissions;
    bool present;
  };
  void add_segment(std::uint64_t start, std::uint64_t end, std::uint32_t permissions, bool present);
  Status copy_piece(const Mapping& mapping, const Piece& piece);
  Status write_bytes(const std::byte* bytes, std::size_t length, std::uint64_t offset);
  Status write_all(const void* bytes, std::size_t length, std::uint64_t offset);

  int file_;
  ProcessMemory& memory_;
  std::vector<Segment> segments_;
  std::uint64_t end_ = 4096;  // of what has a place in the file
  CoreContents contents_;
};

}  // namespace hinterland::cli
