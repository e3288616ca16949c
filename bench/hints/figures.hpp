// What a hint costs and what it spares: loops over memory with a hint before each access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hints_bench {

struct Work {
  std::string figure;
  std::size_t size_bytes = 0;  // of all threads
  unsigned threads = 1;        // each pages its own part
  int read_ahead = -1;         // pages; below zero: as the runtime chooses (sequential figures only)
  bool hints = true;
  int repeat = 5;
  double seconds = 0.3;      // of one repetition
  std::string shrink, grow;  // commands of the shell, of the fetch figures
};

struct Figure {
  const char* name;
  const char* unit;
  const char* about;
};
const std::vector<Figure>& figures();

struct Measured {
  std::vector<double> values;      // one a repetition
  std::vector<double> cpu_values;  // the same in processor time of all threads, the runtime's too; of paging only
  std::uint64_t accesses = 0;      // of all repetitions and threads
  std::uint64_t pages_in = 0;      // the same; 0 where nothing is paged
  bool with_runtime = false;       // hints are heard
};

// Throws std::runtime_error when memory does not hold what was written to it.
Measured measure(const Work& work);

}  // namespace hints_bench
