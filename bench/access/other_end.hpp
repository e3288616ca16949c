// What read(2) reads from and write(2) writes to: a small file in the page cache, or a pipe with a thread behind it.
// Both take next to no anonymous memory, so that they are not part of what is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "access/patterns.hpp"

namespace access_bench {

class OtherEnd {
 public:
  virtual ~OtherEnd() = default;
  // In pieces of work.piece_bytes, one system call each (more where one gives less than asked for).
  virtual void read_into(std::byte* target, std::size_t bytes) = 0;
  virtual void write_from(const std::byte* source, std::size_t bytes) = 0;
  // The word that read_into() put at this offset of a target.
  virtual std::uint64_t word_at(std::size_t offset) const = 0;
  // Throws when what was written is not what arrived.
  virtual void finish() = 0;
};

// One for each thread. Throws when the folder has no room, or keeps its files in memory.
std::unique_ptr<OtherEnd> open_other_end(const Work& work);

}  // namespace access_bench
