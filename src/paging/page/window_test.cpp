#include "paging/page/window.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "far/test_support.hpp"
#include "paging/page/reservation.hpp"

namespace hinterland {
namespace {

class WindowTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = 16 * kMiB;
  void SetUp() override {
    auto reserved = Window::reserve(kBytes, kBytes);
    ASSERT_TRUE(reserved.has_value());
    window = std::move(*reserved);
  }
  void TearDown() override { raw_munmap(reinterpret_cast<void*>(window.base()), kBytes); }
  Window window;
};

TEST_F(WindowTest, IndexesAndAddresses) {
  EXPECT_EQ(window.pages(), kBytes / kPageSize);
  EXPECT_EQ(window.base() % (2 * kMiB), 0u);
  EXPECT_EQ(window.index_of(window.base() + 5 * kPageSize + 77).value, 5u);
  EXPECT_EQ(window.address_of({5}), window.base() + 5 * kPageSize);
  EXPECT_TRUE(window.contains(window.base(), kBytes));
  EXPECT_FALSE(window.contains(window.base(), kBytes + 1));
  EXPECT_FALSE(window.contains(window.base() + kBytes, 1));
  EXPECT_FALSE(window.contains(window.base() - 1, 1));
  EXPECT_FALSE(window.contains(window.base() + kPageSize, SIZE_MAX));
}

TEST_F(WindowTest, ReservesLessWhereThereIsNotEnough) {
  auto large = Window::reserve(std::size_t{1} << 48, kGiB);  // more than the address space holds
  ASSERT_TRUE(large.has_value());
  EXPECT_LT(large->bytes(), std::size_t{1} << 48);
  raw_munmap(reinterpret_cast<void*>(large->base()), large->bytes());
  EXPECT_FALSE(Window::reserve(std::size_t{1} << 48, std::size_t{1} << 48).has_value());
}

TEST_F(WindowTest, AlignmentAndExhaustion) {
  EXPECT_EQ(window.allocate(kPageSize, kPageSize), window.base());
  EXPECT_EQ(window.allocate(kPageSize, 64 * kKiB), window.base() + 64 * kKiB);
  EXPECT_EQ(window.allocate(2 * kMiB, kPageSize) % (2 * kMiB), 0u);
  EXPECT_EQ(window.allocate(kBytes, kPageSize), 0u);
  EXPECT_EQ(window.allocate(SIZE_MAX & ~(kPageSize - 1), kPageSize), 0u);
}

// Against a flag a page.
TEST_F(WindowTest, RandomAllocationsAgreeWithAModel) {
  std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<bool> used(window.pages(), false);
  auto first_fit = [&](std::size_t pages, std::size_t alignment) -> std::uintptr_t {
    if (bytes_of_pages(pages) >= 2 * kMiB) alignment = std::max(alignment, 2 * kMiB);
    for (std::size_t at = 0; at + pages <= used.size(); at += alignment / kPageSize)
      if (std::none_of(used.begin() + at, used.begin() + at + pages, [](bool taken) { return taken; }))
        return window.base() + bytes_of_pages(at);
    return 0;
  };
  for (int step = 0; step < 20'000; ++step) {
    std::size_t pages = 1 + random() % (random() % 8 == 0 ? 900 : 60), first = random() % (used.size() - pages);
    std::uintptr_t address = window.base() + bytes_of_pages(first);
    bool free = std::none_of(used.begin() + first, used.begin() + first + pages, [](bool taken) { return taken; });
    ASSERT_EQ(window.is_free(address, bytes_of_pages(pages)), free);
    switch (random() % 4) {
      case 0: {
        std::size_t alignment = kPageSize << random() % 6;
        std::uintptr_t expected = first_fit(pages, alignment);
        ASSERT_EQ(window.allocate(bytes_of_pages(pages), alignment), expected);
        if (expected == 0) continue;
        first = (expected - window.base()) / kPageSize;
        std::fill_n(used.begin() + first, pages, true);
        break;
      }
      case 1:
        window.occupy(address, bytes_of_pages(pages));
        std::fill_n(used.begin() + first, pages, true);
        break;
      default:
        window.release(address, bytes_of_pages(pages));
        std::fill_n(used.begin() + first, pages, false);
    }
  }
}

}  // namespace
}  // namespace hinterland
