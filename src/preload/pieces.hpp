// Cuts a range of addresses where far memory begins and ends.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hinterland {

// Calls piece(address, length) for the parts of [address, address + length), lowest first, until one returns
// something other than 0, which it returns. end_of_piece(address, end) says where the part ends that begins at
// `address`. The range does not wrap around.
template <typename EndOfPiece, typename Piece>
int for_pieces(std::uintptr_t address, std::size_t length, EndOfPiece end_of_piece, Piece piece) {
  const std::uintptr_t end = address + length;
  for (std::uintptr_t at = address, next = 0; at < end; at = next) {
    next = end_of_piece(at, end);
    if (int result = piece(at, next - at); result != 0) return result;
  }
  return 0;
}

}  // namespace hinterland
