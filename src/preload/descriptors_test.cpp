#include "preload/descriptors.hpp"

#include <gtest/gtest.h>

#include <climits>
#include <utility>
#include <vector>

namespace hinterland::descriptors {
namespace {

using Parts = std::vector<std::pair<unsigned, unsigned>>;

// Numbers that this process does not have.
class Descriptors : public ::testing::Test {
 protected:
  static constexpr unsigned kFirst = 2000;

  void note(const std::vector<int>& ours) {
    for (int descriptor : ours) {
      note_runtime_descriptor(static_cast<int>(kFirst) + descriptor);
      noted_.push_back(static_cast<int>(kFirst) + descriptor);
    }
  }
  void forget() {
    for (int descriptor : noted_) forget_runtime_descriptor(descriptor);
    noted_.clear();
  }
  void TearDown() override { forget(); }

  Parts parts_of(const std::vector<int>& ours, unsigned first, unsigned last) {
    note(ours);
    Parts parts;
    EXPECT_EQ(for_unprotected(kFirst + first, last == UINT_MAX ? last : kFirst + last,
                              [&](unsigned a, unsigned b) {
                                parts.emplace_back(a - kFirst, b == UINT_MAX ? b : b - kFirst);
                                return 0;
                              }),
              0);
    forget();
    return parts;
  }

 private:
  std::vector<int> noted_;
};

TEST_F(Descriptors, RangesSkipProtectedOnes) {
  EXPECT_EQ(parts_of({}, 3, 9), (Parts{{3, 9}}));
  EXPECT_EQ(parts_of({5}, 3, 9), (Parts{{3, 4}, {6, 9}}));
  EXPECT_EQ(parts_of({9, 3}, 3, 9), (Parts{{4, 8}}));
  EXPECT_EQ(parts_of({5, 4, 6}, 4, 6), Parts{});
  EXPECT_EQ(parts_of({1, 700, 701}, 3, UINT_MAX), (Parts{{3, 699}, {702, UINT_MAX}}));
  EXPECT_EQ(parts_of({7}, 8, 20), (Parts{{8, 20}}));
  EXPECT_EQ(parts_of({63, 64, 2095}, 0, 3000), (Parts{{0, 62}, {65, 2094}, {2096, 3000}})) << "the last remembered";
}

TEST_F(Descriptors, BeyondAllThatIsRememberedNothingIsSkipped) {
  EXPECT_EQ(parts_of({5}, 1u << 20, UINT_MAX), (Parts{{1u << 20, UINT_MAX}}));
  unsigned from = 0, to = 0;
  EXPECT_EQ(for_unprotected(0x8000'0000u, UINT_MAX, [&](unsigned a, unsigned b) { return from = a, to = b, 0; }), 0);
  EXPECT_EQ(from, 0x8000'0000u);
  EXPECT_EQ(to, UINT_MAX);
}

TEST_F(Descriptors, FailureEndsTheWalk) {
  note({5, 7});
  int calls = 0;
  EXPECT_EQ(for_unprotected(kFirst, kFirst + 9, [&](unsigned, unsigned) { return ++calls == 2 ? -22 : 0; }), -22);
  EXPECT_EQ(calls, 2);
}

TEST_F(Descriptors, ProtectsWhatIsNoted) {
  note({9, 3, 700});
  for (int ours : {3, 9, 700}) EXPECT_TRUE(is_protected(static_cast<int>(kFirst) + ours));
  for (int other : {4, 701}) EXPECT_FALSE(is_protected(static_cast<int>(kFirst) + other));
  EXPECT_FALSE(is_protected(-1) || is_protected(INT_MAX));
}

}  // namespace
}  // namespace hinterland::descriptors
