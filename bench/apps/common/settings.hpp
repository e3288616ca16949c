// What every application is told (app.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace apps {

// The options of every application.
struct Settings {
  std::size_t size_bytes = std::size_t{1} << 30;  // about what its data takes
  unsigned threads = 1;                           // that do the measured part; with fibers: that run them
  unsigned fibers = 0;                            // of all threads together; 0: ordinary threads
  std::uint64_t seed = 1;                         // of all that is random
  bool verify = false;                            // hold the result against a simpler computation, after measuring
};

}  // namespace apps
