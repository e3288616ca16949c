#include "preload/descriptors.hpp"

#include <gtest/gtest.h>

#include <climits>
#include <utility>
#include <vector>

namespace hinterland::descriptors {
namespace {

using Parts = std::vector<std::pair<unsigned, unsigned>>;

Parts parts_of(const std::vector<int>& ours, unsigned first, unsigned last) {
  Parts parts;
  Protected set(ours.data(), ours.size());
  EXPECT_EQ(set.for_unprotected(first, last,
                                [&](unsigned a, unsigned b) {
                                  parts.emplace_back(a, b);
                                  return 0;
                                }),
            0);
  return parts;
}

TEST(Descriptors, RangesSkipProtectedOnes) {
  EXPECT_EQ(parts_of({}, 3, 9), (Parts{{3, 9}}));
  EXPECT_EQ(parts_of({5}, 3, 9), (Parts{{3, 4}, {6, 9}}));
  EXPECT_EQ(parts_of({9, 3}, 3, 9), (Parts{{4, 8}}));
  EXPECT_EQ(parts_of({5, 4, 6}, 4, 6), Parts{});
  EXPECT_EQ(parts_of({1, 700, 701}, 3, UINT_MAX), (Parts{{3, 699}, {702, UINT_MAX}}));
  EXPECT_EQ(parts_of({7}, 8, 20), (Parts{{8, 20}}));
}

TEST(Descriptors, FailureEndsTheWalk) {
  int ours[] = {5, 7}, calls = 0;
  EXPECT_EQ(Protected(ours, 2).for_unprotected(0, 9, [&](unsigned, unsigned) { return ++calls == 2 ? -22 : 0; }),
            -22);
  EXPECT_EQ(calls, 2);
}

TEST(Descriptors, Contains) {
  int ours[] = {9, 3, 700};
  Protected set(ours, 3);
  EXPECT_TRUE(set.contains(3) && set.contains(9) && set.contains(700));
  EXPECT_FALSE(set.contains(4) || set.contains(-1) || set.contains(701));
}

}  // namespace
}  // namespace hinterland::descriptors
