#include "paging/regions.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <random>

#include "far/test_support.hpp"

namespace hinterland {
namespace {

TEST(RegionsTest, SplitsAndMergesLikeTheKernel) {
  Regions regions;
  regions.put({10, 20, PROT_READ, 0, false});
  regions.put({20, 30, PROT_READ, 0, false});
  EXPECT_EQ(regions.count(), 1u);  // alike and adjacent
  regions.protect(14, 16, PROT_NONE);
  EXPECT_EQ(regions.count(), 3u);
  regions.protect(14, 16, PROT_READ);
  EXPECT_EQ(regions.count(), 1u);
  regions.remove(15, 18);
  EXPECT_EQ(regions.count(), 2u);
  EXPECT_EQ(regions.mapped_bytes(), 17u);
  EXPECT_EQ(regions.find(15), nullptr);
  ASSERT_NE(regions.find(14), nullptr);
  EXPECT_EQ(regions.find(14)->end, 15u);
  EXPECT_FALSE(regions.covers(10, 30));
  EXPECT_TRUE(regions.covers(18, 30));
  regions.put({30, 40, PROT_READ, MAP_NORESERVE, false});
  EXPECT_EQ(regions.count(), 3u);  // other flags: not alike
  regions.put({40, 50, PROT_READ, 0, true});
  EXPECT_EQ(regions.mapped_bytes(), 27u);  // what is surrendered is not ours
}

// Against a byte of properties each address.
TEST(RegionsTest, RandomChangesAgreeWithAModel) {
  struct Cell {
    bool mapped = false;
    int protection = 0, flags = 0;
    bool surrendered = false;
    bool operator==(const Cell&) const = default;
  };
  constexpr std::size_t kCells = 200;
  std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::array<Cell, kCells> cells;
  Regions regions;
  for (int step = 0; step < 20'000; ++step) {
    std::uintptr_t start = random() % (kCells - 1), end = start + 1 + random() % (kCells - start);
    if (random() % 2 == 0) end = std::min<std::uintptr_t>(end, start + 12);
    int protection = static_cast<int>(random() % 4);
    switch (random() % 4) {
      case 0: {
        bool surrendered = random() % 8 == 0;
        regions.put({start, end, protection, 0, surrendered});
        for (std::uintptr_t at = start; at < end; ++at) cells[at] = {true, protection, 0, surrendered};
        break;
      }
      case 1:
        regions.remove(start, end);
        for (std::uintptr_t at = start; at < end; ++at) cells[at] = {};
        break;
      default:
        regions.protect(start, end, protection);
        for (std::uintptr_t at = start; at < end; ++at)
          if (cells[at].mapped) cells[at].protection = protection;
    }
    std::size_t mapped = 0, count = 0;
    bool covered = true;
    for (std::uintptr_t at = 0; at < kCells; ++at) {
      mapped += cells[at].mapped && !cells[at].surrendered;
      count += cells[at].mapped && (at == 0 || cells[at] != cells[at - 1]);
      covered &= at < start || at >= end || cells[at].mapped;
      const Region* region = regions.find(at);
      ASSERT_EQ(region != nullptr, cells[at].mapped) << at;
      if (region == nullptr) continue;
      ASSERT_EQ(region->protection, cells[at].protection);
      ASSERT_EQ(region->surrendered, cells[at].surrendered);
    }
    ASSERT_EQ(regions.mapped_bytes(), mapped);
    ASSERT_EQ(regions.count(), count);
    ASSERT_EQ(regions.covers(start, end), covered);
    std::uintptr_t reached = start;
    regions.for_each(start, end, [&](const Region& piece) {
      ASSERT_GE(piece.start, reached);
      ASSERT_LE(piece.end, end);
      reached = piece.end;
    });
  }
}

}  // namespace
}  // namespace hinterland
