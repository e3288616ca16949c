// Finds the system calls that a program and its libraries make by instructions of their own, which no function of
// ours stands in for. For the messages of -v.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hinterland::own_calls {

struct Found {
  std::bitset<512> numbers;  // of calls that change memory or descriptors, or end something
  bool any_number = false;   // one whose number comes from elsewhere
  bool none() const { return numbers.none() && !any_number; }
};
// Without a decoder: an instruction counts where a plausible number is loaded shortly before it.
Found scan(std::span<const unsigned char> code);

// Writes one line about each file with such calls that was loaded since the last time, at the level of -v; nothing
// below it. Allocates nothing. `caught`: what becomes of them.
void report(bool caught);

}  // namespace hinterland::own_calls
