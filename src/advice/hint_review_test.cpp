#include "advice/hint_review.hpp"

#include <gtest/gtest.h>

namespace hinterland::trace {
namespace {

constexpr double kSaves = 1e6, kCosts = -1e6;  // ns of waiting, without the read-ahead

TEST(ReadsAheadInVain, WhereHardlyAPageIsUsedHoweverLongAMissTakes) {
  EXPECT_TRUE(reads_ahead_in_vain(59'457, 1'236, kSaves));
  EXPECT_TRUE(reads_ahead_in_vain(59'457, 1'236, kCosts));
  EXPECT_TRUE(reads_ahead_in_vain(1'600, 99, kCosts));
}

TEST(ReadsAheadInVain, WhereFewAreUsedAndNobodyWaitsLongerWithoutIt) {
  EXPECT_FALSE(reads_ahead_in_vain(1'600, 100, kCosts));
  EXPECT_TRUE(reads_ahead_in_vain(1'600, 100, 0));
  EXPECT_TRUE(reads_ahead_in_vain(1'600, 399, kSaves));
  EXPECT_FALSE(reads_ahead_in_vain(1'600, 400, kSaves));
}

TEST(ReadsAheadInVain, OfFewPagesNothingIsSaid) {
  EXPECT_FALSE(reads_ahead_in_vain(19, 0, kSaves));
  EXPECT_TRUE(reads_ahead_in_vain(20, 0, kSaves));
}

}  // namespace
}  // namespace hinterland::trace
