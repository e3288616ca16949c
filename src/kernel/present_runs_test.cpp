// present_runs() of Linux says what present() says of each page, in any amount of room, and costs what is there: a
// terabyte that is only reserved is looked through in no time.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <ctime>
#include <random>
#include <vector>

#include "kernel/kernel.hpp"

namespace hinterland {
namespace {

constexpr std::size_t kPages = 40000;  // more than one look of the slow way

class Reserved {
 public:
  explicit Reserved(std::size_t bytes) : bytes_(bytes) {
    address_ = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(address_, MAP_FAILED);
  }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  ~Reserved() { munmap(address_, bytes_); }
  std::uintptr_t start() const { return reinterpret_cast<std::uintptr_t>(address_); }
  std::uintptr_t end() const { return start() + bytes_; }
  void touch(std::size_t first, std::size_t pages, int later) {
    char* at = static_cast<char*>(address_) + bytes_of_pages(first);
    ASSERT_EQ(mprotect(at, bytes_of_pages(pages), PROT_READ | PROT_WRITE), 0);
    for (std::size_t i = 0; i < pages; ++i) at[bytes_of_pages(i)] = 1;
    ASSERT_EQ(mprotect(at, bytes_of_pages(pages), later), 0);
  }

 private:
  void* address_;
  std::size_t bytes_;
};

std::vector<bool> by_bits(Kernel& kernel, const Reserved& range) {
  std::vector<std::uint64_t> bits(kPages / 64);
  EXPECT_EQ(kernel.present(range.start(), kPages, bits), 0);
  std::vector<bool> there(kPages);
  for (std::size_t i = 0; i < kPages; ++i) there[i] = (bits[i / 64] >> (i % 64) & 1) != 0;
  return there;
}

// `look`: one call of present_runs().
template <typename Look>
std::vector<bool> by_runs(const Reserved& range, std::size_t room, Look look) {
  std::vector<iovec> runs(room);
  std::vector<bool> there(kPages);
  std::uintptr_t last = range.start();
  for (std::uintptr_t at = range.start(); at < range.end();) {
    const PresentRuns found = look(at, range.end(), runs);
    EXPECT_EQ(found.error, 0);
    EXPECT_LE(found.count, room);
    if (found.looked_until <= at) {
      ADD_FAILURE() << "it does not get on";
      break;
    }
    for (std::size_t i = 0; i < found.count; ++i) {
      const auto start = reinterpret_cast<std::uintptr_t>(runs[i].iov_base);
      EXPECT_GE(start, last) << "in order, none twice";
      last = start + runs[i].iov_len;
      for (std::uintptr_t page = start; page < last; page += kPageSize)
        there[(page - range.start()) >> kPageShift] = true;
    }
    at = found.looked_until;
  }
  return there;
}

TEST(PresentRuns, SaysWhatPresentSaysOfEachPage) {
  Kernel& kernel = real_kernel();
  ASSERT_TRUE(kernel.open().has_value());
  std::mt19937 random(7);
  for (int round = 0; round < 5; ++round) {
    Reserved range(bytes_of_pages(kPages));
    for (int i = 0; i < 200; ++i) {
      const std::size_t first = random() % kPages;
      range.touch(first, std::min<std::size_t>(1 + random() % 40, kPages - first),
                  random() % 2 ? PROT_NONE : PROT_READ);
    }
    const std::vector<bool> there = by_bits(kernel, range);
    EXPECT_GT(std::count(there.begin(), there.end(), true), 200);
    for (std::size_t room : {1, 3, 256, 1000}) {
      auto linux_says = [&](auto&&... words) { return kernel.present_runs(words...); };
      auto slow_way = [&](auto&&... words) { return kernel.Kernel::present_runs(words...); };
      EXPECT_EQ(by_runs(range, room, linux_says), there) << "room for " << room;
      EXPECT_EQ(by_runs(range, room, slow_way), there) << "one by one, room for " << room;
    }
  }
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

TEST(PresentRuns, CostsWhatIsThere) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer leaves no terabyte of addresses";
#endif
  Kernel& kernel = real_kernel();
  ASSERT_TRUE(kernel.open().has_value());
  if (!kernel.features().move) GTEST_SKIP() << "a kernel of before 6.8, which may not be able to say so";
  Reserved range(std::size_t{1} << 40);
  range.touch(std::size_t{3} << 26, 2, PROT_NONE);
  std::vector<iovec> runs(4);
  const double started = thread_seconds();
  const PresentRuns found = kernel.present_runs(range.start(), range.end(), runs);
  EXPECT_LT(thread_seconds() - started, 0.1) << "of CPU; page by page it is more than a second";
  ASSERT_EQ(found.error, 0);
  ASSERT_EQ(found.count, 1u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(runs[0].iov_base), range.start() + bytes_of_pages(std::size_t{3} << 26));
  EXPECT_EQ(runs[0].iov_len, bytes_of_pages(2));
  EXPECT_EQ(found.looked_until, range.end());
}

}  // namespace
}  // namespace hinterland
