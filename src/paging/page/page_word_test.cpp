#include "paging/page/page_word.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace hinterland {
namespace {

constexpr far::FarPage kFar{(1ull << 40) - 1};  // the largest there is

TEST(PageWordTest, BitsAreWhereTheLayoutSays) {
  EXPECT_EQ(PageWord{}.bits(), 0u);
  EXPECT_EQ(PageWord::untouched().bits(), 0u);
  EXPECT_EQ(PageWord{}.resident_dirty().bits(), 1u | 1u << 5);
  EXPECT_EQ(PageWord{}.resident_clean({5}).bits(), 1u | 1u << 8 | 5ull << 24);
  EXPECT_EQ(PageWord{}.leaving(7).bits(), 2u | 7ull << 24);
  EXPECT_EQ(PageWord{}.parked(7).bits(), 3u | 7ull << 24);
  EXPECT_EQ(PageWord{}.far(kFar).bits(), 4u | 1u << 8 | kFar.value << 24);
  EXPECT_EQ(PageWord{}.far({9}).arriving().bits(), 5u | 1u << 8 | 9ull << 24);
  EXPECT_EQ(PageWord::lost().bits(), 6u);
  EXPECT_EQ(PageWord{}.with_discardable(true).bits(), 1u << 6);
  EXPECT_EQ(PageWord{}.with_often_written(true).bits(), 1u << 7);
  EXPECT_TRUE(PageWord(1u << 3).busy());
  EXPECT_TRUE(PageWord(1u << 4).waiters());
}

TEST(PageWordTest, AWholeLifeKeepsWhatMatters) {
  PageWord word = PageWord{}.resident_dirty().with_often_written(true);
  word = word.leaving(0xffffffff);
  EXPECT_EQ(word.state(), PageState::leaving);
  EXPECT_EQ(word.frame(), 0xffffffffu);
  EXPECT_FALSE(word.dirty());
  EXPECT_FALSE(word.has_far());
  word = word.parked(12);
  EXPECT_EQ(word.frame(), 12u);
  word = word.far(kFar);
  EXPECT_EQ(word.far_page(), kFar);
  EXPECT_TRUE(word.has_far());
  word = word.arriving();
  EXPECT_EQ(word.state(), PageState::arriving);
  EXPECT_EQ(word.far_page(), kFar);
  word = word.resident_clean(word.far_page());
  EXPECT_EQ(word.far_page(), kFar);
  EXPECT_FALSE(word.dirty());
  EXPECT_TRUE(word.often_written());  // remembered all the way
  word = word.resident_dirty();
  EXPECT_FALSE(word.has_far());
  EXPECT_EQ(word.frame(), 0u);  // no stale payload
}

TEST(PageWordTest, NewWordsAreNotBusyAndOnlyAWriteKeepsTheMark) {
  PageWord locked(PageWord::kBusy | PageWord::kWaiters | PageWord::kDiscardable | PageWord::kDirty);
  for (PageWord next :
       {locked.resident_dirty(), locked.resident_clean({1}), locked.leaving(1), locked.parked(1), locked.far({1})}) {
    EXPECT_FALSE(next.busy());
    EXPECT_FALSE(next.waiters());
  }
  for (PageWord next : {locked.resident_clean({1}), locked.leaving(1), locked.parked(1), locked.far({1})}) {
    EXPECT_FALSE(next.discardable());
  }
  // A write says nothing of whose page it is: the mark stays until the next owner commits the page.
  EXPECT_TRUE(locked.resident_dirty().discardable());
  EXPECT_FALSE(locked.arriving().busy());
  EXPECT_FALSE(locked.arriving().waiters());
}

TEST(PageCellTest, LockingAndWaiting) {
  PageCell cell;
  cell.reset(PageWord{}.far({3}));
  EXPECT_FALSE(cell.announce_waiter());  // nobody to wait for
  PageWord seen;
  ASSERT_TRUE(cell.try_lock(&seen));
  EXPECT_EQ(seen.bits(), PageWord{}.far({3}).bits());
  EXPECT_FALSE(cell.try_lock(&seen));
  EXPECT_TRUE(seen.busy());
  EXPECT_TRUE(cell.announce_waiter());
  cell.set_locked(seen.arriving());
  EXPECT_EQ(cell.load().state(), PageState::arriving);
  EXPECT_TRUE(cell.load().busy());
  EXPECT_TRUE(cell.load().waiters());  // kept while the word changes
  EXPECT_TRUE(cell.unlock(PageWord{}.resident_dirty()));
  EXPECT_EQ(cell.load().bits(), PageWord{}.resident_dirty().bits());
  ASSERT_TRUE(cell.try_lock(&seen));
  EXPECT_FALSE(cell.unlock(seen));
}

// The busy bit guards a plain counter, and every announced waiter is reported exactly to whoever held the page.
TEST(PageCellTest, TheBusyBitExcludesAndNoWaiterIsForgotten) {
  PageCell cell;
  std::uint64_t guarded = 0;
  std::atomic<std::uint64_t> announced{0}, woken{0};
  auto body = [&] {
    for (int i = 0; i < 100'000; ++i) {
      PageWord seen;
      if (!cell.try_lock(&seen)) {
        if (cell.announce_waiter()) announced.fetch_add(1);
        continue;
      }
      ++guarded;
      woken.fetch_add(cell.unlock(PageWord{}.far({guarded})));
    }
  };
  std::thread one(body), two(body);
  one.join();
  two.join();
  EXPECT_EQ(cell.load().far_page().value, guarded);
  EXPECT_EQ(woken.load() > 0, announced.load() > 0);
  EXPECT_LE(woken.load(), announced.load());
  EXPECT_FALSE(cell.load().waiters());
}

}  // namespace
}  // namespace hinterland
