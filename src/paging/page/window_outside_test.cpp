// Places for pages outside of the window.
#include <gtest/gtest.h>

#include "paging/page/page_table.hpp"
#include "paging/page/reservation.hpp"
#include "paging/page/window.hpp"

namespace hinterland {
namespace {

class WindowOutside : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = 64 * kMiB;
  static constexpr std::uintptr_t kLow = 0x1000'0000;  // of the kind that a program chooses
  void SetUp() override {
    auto reserved = Window::reserve(kBytes, kBytes);
    ASSERT_TRUE(reserved.has_value());
    window = std::move(*reserved);
    if (Status status = window.cover_all_addresses(); !status) GTEST_SKIP() << status.error().what();
  }
  void TearDown() override { raw_munmap(reinterpret_cast<void*>(window.base()), kBytes); }
  std::uintptr_t end() const { return window.base() + kBytes; }
  Window window;
};

TEST_F(WindowOutside, EachAddressHasItsOwnPlace) {
  for (std::uintptr_t address : {kLow, window.base(), end() - kPageSize, AddressSet::kEnd - kPageSize}) {
    EXPECT_TRUE(window.has_place(address));
    EXPECT_EQ(window.index_of(address + 5).value, address >> kPageShift);
    EXPECT_EQ(window.address_of(window.index_of(address)), address);
  }
  EXPECT_FALSE(window.has_place(AddressSet::kEnd));
}

TEST_F(WindowOutside, HoldsTheWindowAndWhatIsPutOutside) {
  EXPECT_TRUE(window.holds(window.base()));
  EXPECT_FALSE(window.holds(kLow));
  ASSERT_TRUE(window.allows(kLow, kMiB));
  window.put_outside(kLow, kMiB);
  EXPECT_TRUE(window.holds(kLow + kMiB - 1));
  EXPECT_FALSE(window.holds(kLow + kMiB));
  EXPECT_FALSE(window.contains(kLow, 1));
  EXPECT_TRUE(window.overlaps(kLow - kPageSize, 2 * kPageSize));
  EXPECT_FALSE(window.overlaps(kLow - kPageSize, kPageSize));
  window.take_outside(kLow, kMiB);
  EXPECT_FALSE(window.holds(kLow));
}

TEST_F(WindowOutside, PiecesEndWhereFarMemoryDoes) {
  window.put_outside(kLow, kMiB);
  EXPECT_EQ(window.end_of_piece(0, ~std::uintptr_t{0} >> 17), kLow);
  EXPECT_EQ(window.end_of_piece(kLow, window.base() + kMiB), kLow + kMiB);
  EXPECT_EQ(window.end_of_piece(kLow + kMiB, window.base() + kMiB), window.base());
  EXPECT_EQ(window.end_of_piece(window.base(), end() + kMiB), end());
  EXPECT_EQ(window.end_of_piece(end(), end() + kMiB), end() + kMiB);
}

TEST_F(WindowOutside, NothingTouchesTheWindow) {
  EXPECT_FALSE(window.allows(window.base(), kPageSize));
  EXPECT_FALSE(window.allows(window.base() - kPageSize, kPageSize));
  EXPECT_FALSE(window.allows(end(), kPageSize));
  EXPECT_TRUE(window.allows(end() + kPageSize, kPageSize));
  EXPECT_FALSE(window.allows(AddressSet::kEnd, kPageSize));
}

TEST_F(WindowOutside, SoManyAddressesAsTheTablesHaveRoomFor) {
  constexpr std::uintptr_t kFar = 0x2000'0000'0000;
  constexpr std::size_t kTiB = 1024 * kGiB;
  EXPECT_FALSE(window.allows(kFar, 16 * kTiB));
  ASSERT_TRUE(window.allows(kFar, 10 * kTiB));
  window.put_outside(kFar, 10 * kTiB);
  window.take_outside(kFar, 10 * kTiB);
  EXPECT_FALSE(window.allows(kLow, 8 * kTiB)) << "numbers of pages are never taken back";
  EXPECT_TRUE(window.allows(kFar + kTiB, 8 * kTiB)) << "these addresses have theirs";
  EXPECT_TRUE(window.allows(kLow, kTiB));
}

TEST_F(WindowOutside, WordsOfDistantPagesAreTheirOwn) {
  PageTable table;
  ASSERT_TRUE(table.create(window.places(), window.used_most()).has_value());
  const PageIndex low = window.index_of(kLow), alike = {low.value + (std::uint64_t{1} << 32)};
  for (PageIndex page : {low, alike}) table.note_used(page);
  table[low].reset(PageWord::lost());
  EXPECT_EQ(table[alike].load().state(), PageState::untouched) << "4 GiB of pages apart, in 32 bits the same";
  EXPECT_EQ(table.page_of(table.dense_of(low)), low);
  EXPECT_EQ(table.page_of(table.dense_of(alike)), alike);
  std::vector<PageIndex> seen;
  table.for_each_used(low, 1, [&](PageIndex page, PageCell&) { seen.push_back(page); });
  EXPECT_EQ(seen, std::vector{low});
}

TEST(WindowAlone, HasNothingOutside) {
  auto window = Window::reserve(64 * kMiB, 64 * kMiB);
  ASSERT_TRUE(window.has_value());
  EXPECT_FALSE(window->covers_all_addresses());
  EXPECT_FALSE(window->allows(0x1000'0000, kPageSize));
  EXPECT_FALSE(window->holds(0x1000'0000));
  EXPECT_FALSE(window->has_place(window->base() - 1));
  EXPECT_EQ(window->index_of(window->base()).value, 0u);
  raw_munmap(reinterpret_cast<void*>(window->base()), 64 * kMiB);
}

}  // namespace
}  // namespace hinterland
