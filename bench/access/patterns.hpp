// The ways to go through memory. One access a page; what is read is checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "access/memory.hpp"

namespace access_bench {

enum class Pattern {
  first_touch,
  sequential_read,
  sequential_write,
  random_read,
  random_write,
  working_set_write,
  strided_read,
  reverse_read,
  read_call,
  write_call,
  temporary,
};

struct PatternName {
  Pattern pattern;
  const char* name;
  const char* about;
};
const std::vector<PatternName>& pattern_names();

struct Work {
  Pattern pattern = Pattern::random_read;
  std::size_t size_bytes = 0;  // of all threads
  std::size_t piece_bytes = 0;
  std::uint64_t accesses = 0;  // of all threads; 0 means one a page
  unsigned threads = 1;
  std::uint64_t seed = 1;
  Content content = Content::half;
  bool through_pipe = false;  // read_call and write_call: a pipe with a thread at its other end, not a file
  std::string folder;         // of that file
  bool from_malloc = false;
  std::size_t unwritable_pages = 0;  // every second piece of so many may not be written when it is read; 0: all may
  bool hints = false;                // a hint before each access of the four patterns that have one
};

struct Done {
  std::uint64_t accesses = 0;
  double seconds = 0;          // wall time of the accesses of all threads, preparation left out
  std::uint64_t checksum = 0;  // the same for the same work, whatever it runs on
};

// Throws std::runtime_error when memory does not hold what was written to it, or a system call fails.
Done perform(const Work& work, Memory& memory);

}  // namespace access_bench
