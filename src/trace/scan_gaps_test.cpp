#include "trace/scan_gaps.hpp"

#include <gtest/gtest.h>

namespace hinterland::trace {
namespace {

void go(ScanGaps& scans, std::uint64_t first, int step, int faults, std::uint64_t thread) {
  for (int i = 0; i < faults; ++i) EXPECT_EQ(scans.on_fault(first + i * step, thread).count, 0u);
}

TEST(ScanGapsTest, FindsWhatAScanLeavesOut) {
  ScanGaps scans;
  go(scans, 100, 1, 5, 1);
  go(scans, 500, -1, 5, 1);  // another scan of the same thread, downwards
  ScanGaps::Gap up = scans.on_fault(108, 1), down = scans.on_fault(490, 1);
  EXPECT_EQ(up.first, 105u);
  EXPECT_EQ(up.count, 3u);
  EXPECT_EQ(down.first, 491u);
  EXPECT_EQ(down.count, 5u);
  EXPECT_EQ(scans.on_fault(109, 1).count, 0u);
  EXPECT_EQ(scans.on_fault(111, 1).first, 110u);
}

TEST(ScanGapsTest, TakesNothingElseForAScan) {
  ScanGaps scans;
  go(scans, 100, 1, 3, 1);
  EXPECT_EQ(scans.on_fault(105, 1).count, 0u);  // too short to be told from chance
  go(scans, 200, 1, 5, 1);
  EXPECT_EQ(scans.on_fault(208, 2).count, 0u);  // another thread
  EXPECT_EQ(scans.on_fault(205 + ScanGaps::kGapMax, 1).count, ScanGaps::kGapMax);
  EXPECT_EQ(scans.on_fault(207 + 2 * ScanGaps::kGapMax, 1).count, 0u);  // too far
}

}  // namespace
}  // namespace hinterland::trace
