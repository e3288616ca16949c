// Cuts a range of addresses at the window's edges.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hinterland {

struct Edges {
  std::uintptr_t start, end;  // of the window
};

// Calls piece(address, length, in_window) for the parts of [address, address + length), lowest first, until one
// returns something other than 0, which it returns. The range does not wrap around.
template <typename Piece>
int for_pieces(Edges window, std::uintptr_t address, std::size_t length, Piece piece) {
  const std::uintptr_t end = address + length;
  const std::uintptr_t cuts[] = {address, std::clamp(window.start, address, end),
                                 std::clamp(window.end, address, end), end};
  for (int part = 0; part < 3; ++part) {
    if (cuts[part] >= cuts[part + 1]) continue;
    if (int result = piece(cuts[part], cuts[part + 1] - cuts[part], part == 1); result != 0) return result;
  }
  return 0;
}

}  // namespace hinterland
