#include "paging/page/page_table.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <set>
#include <thread>
#include <vector>

#include "base/units.hpp"

namespace hinterland {
namespace {

constexpr std::uint32_t kPages = 4 * PageTable::kChunkPages;

class PageTableTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(table.create(kPages).has_value()); }

  void set(std::uint32_t page, PageWord word) {
    table.note_used({page});
    table[{page}].reset(word);
  }
  std::vector<std::uint32_t> visited(std::uint32_t first, std::uint32_t count) {
    std::vector<std::uint32_t> pages;
    table.for_each_used({first}, count, [&](PageIndex page, PageCell& cell) {
      EXPECT_EQ(&cell, &table[page]);
      pages.push_back(static_cast<std::uint32_t>(page.value));
    });
    return pages;
  }
  PageTable table;
};

TEST_F(PageTableTest, PagesNeverUsedReadAsUntouched) {
  EXPECT_EQ(table[{17}].load().bits(), PageWord::untouched().bits());
  EXPECT_FALSE(table.is_used({17}));
  set(16, PageWord::lost());
  EXPECT_EQ(table[{17}].load().bits(), PageWord::untouched().bits());
  EXPECT_TRUE(table.is_used({17}));
  EXPECT_FALSE(table.is_used({32}));
  EXPECT_FALSE(table.is_used({15}));
}

TEST_F(PageTableTest, EachPageHasItsOwnCell) {
  std::set<PageCell*> cells;
  for (std::uint32_t page = kPages; page-- > 0;) {
    table.note_used({page});
    cells.insert(&table[{page}]);
  }
  EXPECT_EQ(cells.size(), kPages);
}

TEST_F(PageTableTest, DenseNumbersFollowTheOrderOfUseAndLeadBack) {
  table.note_used({kPages - 1});
  table.note_used({5});
  table.note_used({6});
  EXPECT_EQ(table.dense_of({kPages - 1}), PageTable::kGroupPages - 1);
  EXPECT_EQ(table.dense_of({5}), PageTable::kGroupPages + 5);
  for (std::uint32_t page : {kPages - 1, kPages - PageTable::kGroupPages, 0u, 5u, 15u})
    EXPECT_EQ(table.page_of(table.dense_of({page})).value, page);
  EXPECT_LT(table.dense_of({5}), table.dense_count());
}

TEST_F(PageTableTest, ScansVisitUsedGroupsOnlyClippedAndInOrder) {
  table.note_used({700});  // 688 to 703
  table.note_used({3});
  EXPECT_EQ(visited(0, kPages).size(), 2 * PageTable::kGroupPages);
  EXPECT_EQ(visited(2, 3), (std::vector<std::uint32_t>{2, 3, 4}));
  EXPECT_EQ(visited(14, 676), (std::vector<std::uint32_t>{14, 15, 688, 689}));
  EXPECT_EQ(visited(702, kPages - 702), (std::vector<std::uint32_t>{702, 703}));
  EXPECT_TRUE(visited(16, 672).empty());
  EXPECT_TRUE(visited(kPages - 1, 1).empty());
}

TEST_F(PageTableTest, AllThatWasUsedIsVisitedInTheOrderOfUse) {
  std::vector<std::uint32_t> visited;
  auto visit = [&](PageIndex page, PageCell& cell) {
    EXPECT_EQ(&cell, &table[page]);
    visited.push_back(static_cast<std::uint32_t>(page.value));
  };
  table.for_all_used(visit);
  EXPECT_TRUE(visited.empty());
  for (std::uint32_t page : {PageTable::kChunkPages * 3 + 5, 2u, 3u}) table.note_used({page});
  table.for_all_used(visit);
  ASSERT_EQ(visited.size(), 2 * PageTable::kGroupPages);
  EXPECT_EQ(visited[5], PageTable::kChunkPages * 3 + 5);
  EXPECT_EQ(visited[PageTable::kGroupPages], 0);
  EXPECT_EQ(visited.back(), PageTable::kGroupPages - 1);
}

TEST_F(PageTableTest, ALockOfAPageThatWasNotNotedDies) {
  PageWord seen;
  EXPECT_DEATH(table[{9}].try_lock(&seen), "");
}

TEST_F(PageTableTest, ManyThreadsUseTheSameGroups) {
  constexpr std::uint32_t kThreads = 4;
  std::vector<std::thread> threads;
  for (std::uint32_t mine = 0; mine < kThreads; ++mine)
    threads.emplace_back([this, mine] {
      for (std::uint32_t page = 0; page < kPages; ++page) {
        table.note_used({page});
        if (page % kThreads != mine) continue;
        PageWord seen;
        ASSERT_TRUE(table[{page}].try_lock(&seen));
        ASSERT_FALSE(table[{page}].unlock(PageWord{}.far({page})));
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint32_t> numbers;
  for (std::uint32_t page = 0; page < kPages; ++page) {
    EXPECT_EQ(table[{page}].load().far_page().value, page);
    EXPECT_EQ(table.page_of(table.dense_of({page})).value, page);
    numbers.insert(table.dense_of({page}));
  }
  EXPECT_EQ(numbers.size(), kPages);
  EXPECT_EQ(*numbers.rbegin(), kPages - 1);
}

std::size_t resident_pages(std::uintptr_t address, std::size_t bytes) {
  std::vector<unsigned char> there(page_ceil(bytes) / kPageSize);
  EXPECT_EQ(mincore(reinterpret_cast<void*>(address), bytes, there.data()), 0);
  std::size_t count = 0;
  for (unsigned char page : there) count += page & 1;
  return count;
}

// A page here and a page there in 256 GiB: what the words take stays near what is touched.
TEST(SparsePageTableTest, TakesLittleForPagesFarFromEachOther) {
  PageTable table;
  constexpr std::uint32_t kMany = 256 * kGiB / kPageSize, kTouched = 4096;
  ASSERT_TRUE(table.create(kMany).has_value());
  for (std::uint32_t i = 0; i < kTouched; ++i) {
    PageIndex page{i * (kMany / kTouched)};
    table.note_used(page);
    table[page].reset(PageWord{}.resident_dirty());
  }
  // 128 bytes a group, and a page of the directory for each 64 MiB.
  EXPECT_LE(resident_pages(table.words_address(), kMany / 8), kTouched * 128 / kPageSize + 2);
  EXPECT_LE(resident_pages(table.directory_address(), kMany / 4), kTouched);
}

}  // namespace
}  // namespace hinterland
