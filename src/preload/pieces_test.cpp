#include "preload/pieces.hpp"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

namespace hinterland {
namespace {

using Parts = std::vector<std::tuple<std::uintptr_t, std::size_t, bool>>;

Parts parts_of(std::uintptr_t address, std::size_t length) {
  Parts parts;
  int result = for_pieces({100, 200}, address, length, [&](std::uintptr_t at, std::size_t bytes, bool in_window) {
    parts.emplace_back(at, bytes, in_window);
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
  int result = for_pieces({100, 200}, 50, 300, [&](std::uintptr_t, std::size_t, bool in_window) {
    ++calls;
    return in_window ? -12 : 0;
  });
  EXPECT_EQ(result, -12);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace hinterland
