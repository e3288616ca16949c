#include "paging/page/address_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace hinterland {
namespace {

constexpr std::uintptr_t kBase = 0x5500'0000'0000;

class AddressSetTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(set.create().has_value()); }
  bool from_outside(std::uintptr_t address) const {
    return AddressSet::contains_from_outside(set.chunks_address(), set.bits_address(), address,
                                             [](std::uintptr_t at, auto* value) {
                                               std::memcpy(value, reinterpret_cast<const void*>(at), sizeof *value);
                                               return true;
                                             });
  }
  AddressSet set;
};

TEST_F(AddressSetTest, IsEmptyAtFirst) {
  EXPECT_FALSE(set.contains(kBase));
  EXPECT_FALSE(set.contains(~std::uintptr_t{0}));
  EXPECT_FALSE(set.overlaps(0, AddressSet::kEnd));
  EXPECT_EQ(set.end_of_piece(0, AddressSet::kEnd), AddressSet::kEnd);
  EXPECT_EQ(set.bytes(), 0u);
  EXPECT_FALSE(AddressSet().contains(kBase)) << "one without tables holds nothing";
  EXPECT_EQ(AddressSet().end_of_piece(kBase, kBase + kGiB), kBase + kGiB);
}

TEST_F(AddressSetTest, TellsPagesApart) {
  EXPECT_EQ(set.add(kBase + 3 * kPageSize, 2 * kPageSize), 2u);
  EXPECT_FALSE(set.contains(kBase + 3 * kPageSize - 1));
  EXPECT_TRUE(set.contains(kBase + 3 * kPageSize));
  EXPECT_TRUE(set.contains(kBase + 5 * kPageSize - 1));
  EXPECT_FALSE(set.contains(kBase + 5 * kPageSize));
  EXPECT_EQ(set.end_of_piece(kBase, kBase + kGiB), kBase + 3 * kPageSize);
  EXPECT_EQ(set.end_of_piece(kBase + 3 * kPageSize + 5, kBase + kGiB), kBase + 5 * kPageSize);
  EXPECT_EQ(set.end_of_piece(kBase + 5 * kPageSize, kBase + 40 * kGiB), kBase + 40 * kGiB);
  EXPECT_TRUE(set.overlaps(kBase, 4 * kPageSize));
  EXPECT_FALSE(set.overlaps(kBase, 3 * kPageSize));
  EXPECT_EQ(set.add(kBase, 8 * kPageSize), 6u) << "what is there already is not counted again";
  EXPECT_EQ(set.remove(kBase + 7 * kPageSize, 4 * kPageSize), 1u);
  EXPECT_EQ(set.bytes(), 7 * kPageSize);
}

TEST_F(AddressSetTest, TerabytesCostAByteAGiB) {
  EXPECT_EQ(set.add(kBase + kPageSize, kGiB * 4096), pages_of_bytes(kGiB * 4096));
  EXPECT_TRUE(set.contains(kBase + 2000 * kGiB));
  EXPECT_EQ(set.end_of_piece(kBase + kPageSize, AddressSet::kEnd), kBase + 4096 * kGiB + kPageSize);
  EXPECT_EQ(set.remove(kBase + 100 * kGiB + kPageSize, kPageSize), 1u);
  EXPECT_EQ(set.end_of_piece(kBase + kPageSize, AddressSet::kEnd), kBase + 100 * kGiB + kPageSize);
  EXPECT_TRUE(set.contains(kBase + 100 * kGiB));
  EXPECT_EQ(set.remove(kBase, 4097 * kGiB), pages_of_bytes(kGiB * 4096) - 1);
  EXPECT_EQ(set.bytes(), 0u);
  EXPECT_FALSE(set.overlaps(0, AddressSet::kEnd));
}

#ifdef __SANITIZE_ADDRESS__  // the model, page by page, takes nearly all of the time
constexpr int kRounds = 40;
#else
constexpr int kRounds = 200;
#endif

// Around the borders of three GiB, against a set of pages.
TEST_F(AddressSetTest, IsAsAPlainSet) {
  constexpr std::uint64_t kChunk = kGiB / kPageSize, kFirst = (kBase + kGiB) / kPageSize;
  const std::vector<std::uint64_t> around = {kFirst, kFirst + kChunk, kFirst + 2 * kChunk};
  std::mt19937_64 random(7);
  const std::uint64_t lowest = kFirst - 200;
  std::vector<bool> model(2 * kChunk + 400);  // by page from `lowest` on
  std::size_t size = 0;
  auto draw = [&] { return around[random() % around.size()] - 70 + random() % 140; };
  auto holds = [&](std::uint64_t page) { return page - lowest < model.size() && model[page - lowest]; };
  for (int round = 0; round < kRounds; ++round) {
    std::uint64_t first = draw(), end = draw();
    if (first > end) std::swap(first, end);
    const bool add = random() % 2 == 0;
    std::size_t changed = 0;
    for (std::uint64_t page = first; page < end; ++page) changed += holds(page) != add;
    std::fill(model.begin() + static_cast<std::ptrdiff_t>(first - lowest),
              model.begin() + static_cast<std::ptrdiff_t>(end - lowest), add);
    size = add ? size + changed : size - changed;
    const std::size_t got = add ? set.add(first * kPageSize, (end - first) * kPageSize)
                                : set.remove(first * kPageSize, (end - first) * kPageSize);
    ASSERT_EQ(got, changed);
    ASSERT_EQ(set.bytes(), size * kPageSize);
    for (int look = 0; look < 50; ++look) {
      const std::uint64_t page = draw();
      ASSERT_EQ(set.contains(page * kPageSize + random() % kPageSize), holds(page));
      ASSERT_EQ(from_outside(page * kPageSize), holds(page));
      const std::uint64_t limit = page + 1 + random() % (look == 0 ? 2 * kChunk : 200);
      std::uint64_t expected = page;
      while (expected < limit && holds(expected) == holds(page)) ++expected;
      ASSERT_EQ(set.end_of_piece(page * kPageSize, limit * kPageSize), expected * kPageSize);
    }
  }
}

}  // namespace
}  // namespace hinterland
