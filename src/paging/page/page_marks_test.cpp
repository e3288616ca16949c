#include "paging/page/page_marks.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <random>
#include <vector>

namespace hinterland {
namespace {

class PageMarksTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(marks.create(4096)); }
  PageMarks marks;
};

TEST_F(PageMarksTest, HeldUntilTheLastHasLetGo) {
  EXPECT_FALSE(marks.is_held({7}));
  marks.hold({7});
  marks.hold({7});
  EXPECT_FALSE(marks.let_go({7}));
  EXPECT_TRUE(marks.is_held({7}));
  EXPECT_FALSE(marks.let_go({7}));
  EXPECT_FALSE(marks.is_held({7}));
  EXPECT_FALSE(marks.let_go({7}));  // one more changes nothing
  EXPECT_FALSE(marks.is_held({8}));
}

TEST_F(PageMarksTest, ThePolicyIsToldOfPagesThatItOfferedInVain) {
  EXPECT_FALSE(marks.note_offered({7}));  // nobody holds it: it may go
  marks.hold({7});
  marks.hold({7});
  EXPECT_TRUE(marks.note_offered({7}));
  EXPECT_FALSE(marks.let_go({7}));
  EXPECT_TRUE(marks.let_go({7}));
  EXPECT_FALSE(marks.note_offered({7}));
  marks.hold({7});
  EXPECT_FALSE(marks.let_go({7}));  // once
}

TEST_F(PageMarksTest, AFullCountStays) {
  for (int i = 0; i < 300; ++i) marks.hold({1});
  for (int i = 0; i < 300; ++i) EXPECT_FALSE(marks.let_go({1}));
  EXPECT_TRUE(marks.is_held({1}));
  EXPECT_TRUE(marks.is_dumped({1}));
}

TEST_F(PageMarksTest, DumpingAndHoldingAreApart) {
  marks.hold({600});
  marks.set_dumped({500}, 200, false);
  EXPECT_TRUE(marks.is_dumped({499}));
  EXPECT_FALSE(marks.is_dumped({500}));
  EXPECT_FALSE(marks.is_dumped({699}));
  EXPECT_TRUE(marks.is_dumped({700}));
  EXPECT_TRUE(marks.is_held({600}));
  marks.set_dumped({600}, 1, true);
  EXPECT_TRUE(marks.is_dumped({600}));
  EXPECT_TRUE(marks.is_held({600}));
}

// Random calls, of whole chunks and of parts, beside a model that has a bit for each page.
TEST_F(PageMarksTest, DumpingIsKeptPageByPageWhateverTheChunks) {
  constexpr std::uint32_t kPages = 4096, kChunk = PageMarks::kChunkPages;
  auto random = [engine = std::mt19937(20261126)](std::uint32_t below) mutable {
    return static_cast<std::uint32_t>(engine() % below);
  };
  std::vector<bool> dumped(kPages, true), held(kPages, false);
  for (int step = 0; step < 3000; ++step) {
    bool whole = random(2) == 0;
    std::uint32_t first = whole ? random(kPages / kChunk) * kChunk : random(kPages);
    std::uint32_t count = std::min(whole ? kChunk * (1 + random(3)) : 1 + random(kChunk + 100), kPages - first);
    switch (random(5)) {
      case 0:
        marks.clear({first}, count);
        std::fill_n(dumped.begin() + first, count, true);
        std::fill_n(held.begin() + first, count, false);
        break;
      case 1:
        if (!held[first]) marks.hold({first});
        held[first] = true;
        break;
      case 2: {  // to memory without marks, as mremap does
        count = std::min(count, kPages / 2);
        std::uint32_t from = first % (kPages / 2 - count + 1), to = kPages / 2 + first % (kPages / 2 - count + 1);
        marks.clear({to}, count);
        marks.copy({from}, {to}, count);
        std::copy_n(dumped.begin() + from, count, dumped.begin() + to);
        std::copy_n(held.begin() + from, count, held.begin() + to);
        break;
      }
      default: {
        bool value = random(2) == 0;
        marks.set_dumped({first}, count, value);
        std::fill_n(dumped.begin() + first, count, value);
      }
    }
    for (std::uint32_t page = 0; page < kPages; ++page) {
      ASSERT_EQ(marks.is_dumped({page}), dumped[page]) << "step " << step << ", page " << page;
      ASSERT_EQ(marks.is_held({page}), held[page]) << "step " << step << ", page " << page;
    }
  }
}

// A runtime that reserves a terabyte excludes all of it.
TEST(PageMarks, ExcludingATerabyteTouchesNextToNothing) {
  constexpr std::uint32_t kPages = 1u << 28;
  PageMarks marks;
  ASSERT_TRUE(marks.create(kPages));
  marks.set_dumped({0}, kPages, false);
  EXPECT_FALSE(marks.is_dumped({kPages / 2 + 7}));
  std::vector<unsigned char> resident(kPages / kPageSize);
  ASSERT_EQ(mincore(reinterpret_cast<void*>(marks.address()), kPages, resident.data()), 0);
  EXPECT_LE(std::ranges::count_if(resident, [](unsigned char byte) { return byte != 0; }), 1);  // that was looked at
  marks.clear({0}, kPages);
  EXPECT_TRUE(marks.is_dumped({kPages / 2 + 7}));
}

TEST_F(PageMarksTest, GoWithThePages) {
  marks.hold({10});
  marks.set_dumped({11}, 1, false);
  marks.copy({8}, {1008}, 8);
  marks.clear({8}, 8);
  EXPECT_FALSE(marks.is_held({10}));
  EXPECT_TRUE(marks.is_dumped({11}));
  EXPECT_TRUE(marks.is_held({1010}));
  EXPECT_FALSE(marks.is_dumped({1011}));
}

TEST_F(PageMarksTest, VisitsMarkedPagesOnly) {
  std::uint32_t visits = 0;
  marks.for_each({0}, 4096, [&](PageIndex) { ++visits; });
  EXPECT_EQ(visits, 0u);
  marks.hold({511});
  marks.hold({512});
  marks.hold({4095});
  marks.for_each({512}, 3584, [&](PageIndex page) {
    ++visits;
    EXPECT_TRUE(page.value == 512 || page.value == 4095);
  });
  EXPECT_EQ(visits, 2u);
}

}  // namespace
}  // namespace hinterland
