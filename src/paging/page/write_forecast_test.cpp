#include "paging/page/write_forecast.hpp"

#include <gtest/gtest.h>

namespace hinterland {
namespace {

class WriteForecastTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(forecast.create(64 * WriteForecast::kBlockPages)); }
  // How many of 160 guesses for the block say that its pages will be written.
  int expected_of_160(std::uint32_t block) {
    int expected = 0;
    for (std::uint32_t i = 0; i < 160; ++i) expected += forecast.expects_write(page(block, i));
    return expected;
  }
  static PageIndex page(std::uint32_t block, std::uint32_t i) { return {block * WriteForecast::kBlockPages + i}; }
  WriteForecast forecast;
};

TEST_F(WriteForecastTest, ExpectsNothingWithoutHistory) { EXPECT_EQ(expected_of_160(0), 0); }

TEST_F(WriteForecastTest, FewWritesAreEnoughAndSomePagesAreAlwaysProtected) {
  for (std::uint32_t i = 0; i < 3; ++i) forecast.note_written(page(5, i));
  EXPECT_EQ(expected_of_160(5), 150);  // one in 16 is a sample
}

TEST_F(WriteForecastTest, BlocksWithoutHistoryDoAsTheProgramDoes) {
  for (std::uint32_t i = 0; i < 20; ++i) forecast.note_written(page(i, 0));
  EXPECT_EQ(expected_of_160(63), 150);
}

TEST_F(WriteForecastTest, BlocksDiffer) {
  for (std::uint32_t i = 0; i < 100; ++i) {
    forecast.note_written(page(1, i));
    forecast.note_left_clean(page(2, i));
  }
  EXPECT_EQ(expected_of_160(1), 150);
  EXPECT_EQ(expected_of_160(2), 0);
}

TEST_F(WriteForecastTest, Unlearns) {
  for (std::uint32_t i = 0; i < 500; ++i) forecast.note_written(page(1, i));
  for (std::uint32_t i = 0; i < 10; ++i) forecast.note_left_clean(page(1, i));
  EXPECT_EQ(expected_of_160(1), 0);
  for (std::uint32_t i = 0; i < 500; ++i) forecast.note_left_clean(page(1, i));
  for (std::uint32_t i = 0; i < 10; ++i) forecast.note_written(page(1, i));
  EXPECT_EQ(expected_of_160(1), 150);
}

TEST_F(WriteForecastTest, TheLastPageOfAWindowThatIsNoWholeBlock) {
  WriteForecast small;
  ASSERT_TRUE(small.create(7));
  small.note_written({6});
  small.note_written({6});
  EXPECT_TRUE(small.expects_write({5}) || small.expects_write({5}));
}

}  // namespace
}  // namespace hinterland
