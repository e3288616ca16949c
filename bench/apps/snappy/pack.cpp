// Snappy over files in memory, and the hints: each piece is read, or written, from its beginning to its end, and not
// soon again.
#define XXH_INLINE_ALL
#include <snappy.h>
#include <xxhash.h>

#include <hinterland/hint.hpp>
#include <stdexcept>

#include "snappy/files.hpp"

namespace compressing {
namespace {

constexpr int kLast = 15;   // leaves before what may be used again
constexpr int kAhead = 32;  // pages: two pieces

}  // namespace

std::uint64_t pack(File& file) {
  std::uint64_t hash = 0;
  char* to = &file.packed[0];
  for (std::size_t piece = 0; piece < file.pieces(); ++piece) {
    const char* from = &file.text[piece * kPieceBytes];
    hl::hint(from, {.size = file.piece_bytes(piece), .rdahead = kAhead, .ev_prio = kLast});
    std::size_t size = 0;
    snappy::RawCompress(from, file.piece_bytes(piece), to, &size);
    hash = XXH3_64bits_withSeed(to, size, hash);
    file.packed_bytes[piece] = static_cast<std::uint32_t>(size);
    to += size;
  }
  return hash;
}

std::uint64_t unpack(File& file) {
  std::uint64_t hash = 0;
  const char* from = &file.packed[0];
  for (std::size_t piece = 0; piece < file.pieces(); ++piece) {
    std::size_t size = file.packed_bytes[piece], wanted = file.piece_bytes(piece), found = 0;
    char* to = &file.unpacked[piece * kPieceBytes];
    hl::hint(from, {.size = size, .rdahead = kAhead, .ev_prio = kLast});
    hl::hint(to, {.mut = true, .size = wanted, .ev_prio = kLast});
    if (!snappy::GetUncompressedLength(from, size, &found) || found != wanted ||
        !snappy::RawUncompress(from, size, to))
      throw std::runtime_error("Snappy cannot decompress what it has compressed");
    hash = XXH3_64bits_withSeed(to, wanted, hash);
    from += size;
  }
  return hash;
}

}  // namespace compressing
