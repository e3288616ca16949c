// A figure: what a repeated measurement gave, or why there is none; and the settings that all figures share.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace hinterland::bench {

struct Settings {
  std::size_t total_bytes = 0;        // what the paging loops page over
  std::size_t local_bytes = 0;        // what they may keep resident
  std::size_t primitive_bytes = 0;    // what the primitives are tried on
  std::size_t evict_batch_pages = 0;  // what one eviction takes
  int repeat = 0;
  double seconds = 0;  // one repetition of a paging loop
};

struct Figure {
  std::string name;            // "primitive/uffdio-copy/16": stable, other tools look for it
  std::string unit;            // "ns/page" or "ns/call"
  std::vector<double> values;  // one a repetition
  std::string skipped;         // why there are none
};

// Something that can be measured: `measure` gives the value of each repetition, or throws Failed or Unavailable.
struct Measurement {
  std::string name;
  std::string unit;
  std::function<std::vector<double>(const Settings&)> measure;
};

double median(std::vector<double> values);

inline double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A generator that costs a nanosecond and gives the same numbers everywhere.
class Random {
 public:
  explicit Random(unsigned long long seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  unsigned long long next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>((next() >> 11) % bound); }

 private:
  unsigned long long state_;
};

}  // namespace hinterland::bench
