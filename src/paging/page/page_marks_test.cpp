#include "paging/page/page_marks.hpp"

#include <gtest/gtest.h>

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
