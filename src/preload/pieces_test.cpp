#include "preload/pieces.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

namespace hinterland {
namespace {

using Parts = std::vector<std::tuple<std::uintptr_t, std::size_t, bool>>;

// Far memory is [100, 200).
bool is_far(std::uintptr_t at) { return at >= 100 && at < 200; }
std::uintptr_t end_of_piece(std::uintptr_t at, std::uintptr_t end) {
  return std::min(end, at < 100 ? 100 : at < 200 ? 200 : end);
}

Parts parts_of(std::uintptr_t address, std::size_t length) {
  Parts parts;
  int result = for_pieces(address, length, end_of_piece, [&](std::uintptr_t at, std::size_t bytes) {
    parts.emplace_back(at, bytes, is_far(at));
    return 0;
  });
  EXPECT_EQ(result, 0);
  return parts;
}

TEST(Pieces, WholeOnOneSide) {
  EXPECT_EQ(parts_of(10, 50), (Parts{{10, 50, false}}));
  EXPECT_EQ(parts_of(10, 90), (Parts{{10, 90, false}}));
  EXPECT_EQ(parts_of(100, 100), (Parts{{100, 100, true}}));
  EXPECT_EQ(parts_of(120, 30), (Parts{{120, 30, true}}));
  EXPECT_EQ(parts_of(200, 5), (Parts{{200, 5, false}}));
  EXPECT_EQ(parts_of(150, 0), Parts{});
}

TEST(Pieces, AcrossTheEdges) {
  EXPECT_EQ(parts_of(90, 20), (Parts{{90, 10, false}, {100, 10, true}}));
  EXPECT_EQ(parts_of(190, 20), (Parts{{190, 10, true}, {200, 10, false}}));
  EXPECT_EQ(parts_of(50, 300), (Parts{{50, 50, false}, {100, 100, true}, {200, 150, false}}));
}

TEST(Pieces, StopsAtTheFirstFailure) {
  int calls = 0;
  int result = for_pieces(50, 300, end_of_piece, [&](std::uintptr_t at, std::size_t) {
    ++calls;
    return is_far(at) ? -12 : 0;
  });
  EXPECT_EQ(result, -12);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace hinterland
