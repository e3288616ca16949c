// What a policy reads ahead, as far as it is used.
#include "paging/page/chosen_ahead.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

namespace hinterland {
namespace {

constexpr std::uint64_t kRoom = 500;

// A program that misses, and a policy that would bring so many pages with each miss.
class Reader {
 public:
  // Every page of the run behind a miss, of which the program goes on to use the first `used`, or none.
  void miss(std::uint32_t chosen, std::uint32_t used) {
    hl_page first = next_page_;
    next_page_ += chosen;
    std::vector<hl_page> pages(chosen);
    std::iota(pages.begin(), pages.end(), first);
    std::size_t allowed = ahead.allow(pages, came_, kRoom, [this](hl_page page) { return far(page); });
    came_ += 1 + allowed;
    std::vector<hl_page> brought(pages.begin(), pages.begin() + static_cast<std::ptrdiff_t>(allowed));
    last_brought = brought;
    for (hl_page page = first; page < first + used; ++page) {
      if (std::ranges::find(brought, page) != brought.end()) continue;
      ++misses;
      ahead.wants(page);
      ++came_;
    }
  }
  std::function<bool(hl_page)> far = [](hl_page) { return true; };
  ChosenAhead ahead;
  std::uint64_t misses = 0;
  std::vector<hl_page> last_brought;

 private:
  hl_page next_page_ = 0;
  std::uint64_t came_ = 0;
};

TEST(ChosenAheadTest, AllIsBroughtWhereAllIsUsed) {
  Reader reader;
  for (int i = 0; i < 1000; ++i) reader.miss(32, 32);
  EXPECT_EQ(reader.ahead.allowed(), ChosenAhead::kMost);
  EXPECT_EQ(reader.misses, 1000u * 32 / ChosenAhead::kSampleEvery);  // the samples alone
}

TEST(ChosenAheadTest, OnePageIsBroughtWhereNothingIsUsed) {
  Reader reader;
  for (int i = 0; i < 5000; ++i) reader.miss(32, 0);
  EXPECT_EQ(reader.ahead.allowed(), 1u);
  reader.miss(32, 0);
  EXPECT_LE(reader.last_brought.size(), 1u);
}

TEST(ChosenAheadTest, AllIsBroughtAgainOnceItIsUsed) {
  Reader reader;
  for (int i = 0; i < 5000; ++i) reader.miss(32, 0);
  ASSERT_EQ(reader.ahead.allowed(), 1u);
  for (int i = 0; i < 5000; ++i) reader.miss(32, 32);
  EXPECT_EQ(reader.ahead.allowed(), ChosenAhead::kMost);
}

TEST(ChosenAheadTest, AThirdIsWorthIt) {
  Reader reader;
  for (int i = 0; i < 5000; ++i) reader.miss(30, 10);
  EXPECT_GE(reader.ahead.allowed(), 10u);
}

TEST(ChosenAheadTest, TheMostUrgentAreBrought) {
  Reader reader;
  for (int i = 0; i < 1000 && reader.ahead.allowed() == ChosenAhead::kMost; ++i) reader.miss(64, 0);
  std::size_t allowed = reader.ahead.allowed();
  ASSERT_EQ(allowed, ChosenAhead::kMost / 2);
  std::vector<hl_page> pages(64);
  std::iota(pages.begin(), pages.end(), 1'000'000);
  std::size_t count = reader.ahead.allow(pages, 0, UINT64_MAX, [](hl_page) { return false; });
  EXPECT_EQ(count, allowed);
  EXPECT_EQ(pages[0], 1'000'000u);
  EXPECT_EQ(pages[count - 1], 1'000'000u + count - 1);
}

// What is asked for again and again is withheld again and again, or it would not be seen that it is used.
TEST(ChosenAheadTest, ASampleStaysWithheldUntilItIsWanted) {
  ChosenAhead ahead;
  auto far = [](hl_page) { return true; };
  std::vector<hl_page> pages(16);
  std::iota(pages.begin(), pages.end(), 0);
  ASSERT_EQ(ahead.allow(pages, 0, 100, far), 15u);
  pages = {15};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(ahead.allow(pages, 1, 100, far), 0u);
  ahead.wants(15);
  EXPECT_EQ(ahead.allow(pages, 2, 100, far), 1u);
}

TEST(ChosenAheadTest, PagesThatAreThereOrCameOtherwiseSayNothing) {
  Reader reader;
  reader.far = [](hl_page) { return false; };
  for (int i = 0; i < 5000; ++i) reader.miss(32, 0);
  EXPECT_EQ(reader.ahead.allowed(), ChosenAhead::kMost);
  // Withheld while they are far; they are there when it is looked at them.
  ChosenAhead ahead;
  std::uint64_t came = 0;
  hl_page next = 0;
  for (int i = 0; i < 5000; ++i) {
    std::vector<hl_page> pages(32);
    std::iota(pages.begin(), pages.end(), next);
    hl_page oldest_far = next;
    next += 32;
    came += ahead.allow(pages, came, kRoom, [=](hl_page page) { return page >= oldest_far; });
  }
  EXPECT_EQ(ahead.allowed(), ChosenAhead::kMost);
}

}  // namespace
}  // namespace hinterland
