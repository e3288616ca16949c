// Files in memory: what is compressed, what came of it, and what became of that again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/pages.hpp"

namespace compressing {

// As in Snappy's framing format: a file is compressed in pieces, so that neither side needs all of it at once.
inline constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

struct File {
  File(std::size_t size_bytes);

  std::size_t pieces() const { return (text.size() + kPieceBytes - 1) / kPieceBytes; }
  std::size_t piece_bytes(std::size_t piece) const;

  apps::Pages<char> text;
  apps::Pages<char> packed;  // room for what does not compress; only what is written takes memory
  apps::Pages<char> unpacked;
  std::vector<std::uint32_t> packed_bytes;  // of each piece; they lie one behind the other
};

// Words out of a list, the same for the same seed and number: about half of it remains.
File generate(std::size_t size_bytes, std::uint64_t seed, std::uint64_t number);
// One from the file system. Throws std::invalid_argument when it cannot be read or is empty.
File load(const std::string& path);

// Compresses all pieces; returns a hash of the result. One thread a file.
std::uint64_t pack(File& file);
// Decompresses them; returns a hash of what came out. Throws std::runtime_error when Snappy refuses.
std::uint64_t unpack(File& file);

}  // namespace compressing
