// What a cell of memory must hold, computed from its stamp: so that the shadow of 1 KiB is 4 bytes, and bytes that
// came from elsewhere say from where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "random.hpp"

namespace churn {

using Stamp = std::uint32_t;
inline constexpr std::size_t kCellBytes = 1024;

inline constexpr Stamp kZeros = 0;             // never written, or dropped
inline constexpr Stamp kFirstGenerated = 256;  // 1..255: every byte is the stamp, as memset leaves it
inline constexpr Stamp kHole = 0xffffffff;     // nothing is mapped here
inline constexpr std::size_t kNoMismatch = ~std::size_t{0};

inline Stamp new_stamp(Random& random) {
  Stamp stamp = static_cast<Stamp>(random.next());
  return stamp < kFirstGenerated || stamp == kHole ? kFirstGenerated : stamp;
}

// Word i of a cell. Word 0 of a generated cell is its stamp in the clear; odd stamps compress, even ones do not.
inline std::uint64_t word_of(Stamp stamp, std::size_t i) {
  if (stamp < kFirstGenerated) return stamp * 0x0101010101010101ull;
  std::uint64_t plain = std::uint64_t{stamp} << 32 | i;
  return i == 0 || (stamp & 1) ? plain : scramble(plain);
}

// Whole words are written and compared as such; only the end of an odd-sized allocation is less than one.
inline void fill(char* cell, std::size_t bytes, Stamp stamp) {
  std::size_t words = bytes / sizeof(std::uint64_t), rest = bytes % sizeof(std::uint64_t);
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = word_of(stamp, i);
    std::memcpy(cell + i * sizeof word, &word, sizeof word);
  }
  std::uint64_t word = word_of(stamp, words);
  std::memcpy(cell + words * sizeof word, &word, rest);
}

// Offset of the first word that is wrong, or kNoMismatch.
inline std::size_t first_mismatch(const char* cell, std::size_t bytes, Stamp stamp) {
  std::size_t words = bytes / sizeof(std::uint64_t), rest = bytes % sizeof(std::uint64_t);
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t found;
    std::memcpy(&found, cell + i * sizeof found, sizeof found);
    if (found != word_of(stamp, i)) return i * sizeof found;
  }
  std::uint64_t word = word_of(stamp, words);
  return std::memcmp(cell + words * sizeof word, &word, rest) == 0 ? kNoMismatch : words * sizeof word;
}

}  // namespace churn
