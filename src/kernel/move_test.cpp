// MOVE says how much it moved, and what it did not move is where it was: also when several threads take a huge page
// apart at once.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "kernel/kernel.hpp"

namespace hinterland {
namespace {

constexpr std::size_t kHuge = 2 * kMiB;
constexpr std::size_t kHugePages = 4;
constexpr std::size_t kBytes = kHugePages * kHuge;
constexpr std::size_t kWords = kPageSize / sizeof(std::uint64_t);
constexpr unsigned kThreads = 4;

// An aligned range that the fault descriptor knows. It stays registered until it is unmapped.
class Range {
 public:
  explicit Range(int advice) {
    reserved_ = mmap(nullptr, kBytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    address_ = (reinterpret_cast<std::uintptr_t>(reserved_) + kHuge - 1) & ~(kHuge - 1);
    madvise(reinterpret_cast<void*>(address_), kBytes, advice);
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range() { munmap(reserved_, kBytes + kHuge); }
  std::uintptr_t address() const { return address_; }
  std::uint64_t* page(std::size_t number) const {
    return reinterpret_cast<std::uint64_t*>(address_ + bytes_of_pages(number));
  }

 private:
  void* reserved_;
  std::uintptr_t address_;
};

// Which pages of a range are there.
std::vector<bool> there(std::uintptr_t address) {
  std::vector<std::uint64_t> bits((kBytes >> kPageShift) / 64);
  EXPECT_EQ(real_kernel().present(address, kBytes >> kPageShift, bits), 0);
  std::vector<bool> result(kBytes >> kPageShift);
  for (std::size_t page = 0; page < result.size(); ++page) result[page] = (bits[page / 64] >> (page % 64) & 1) != 0;
  return result;
}

// Takes [first, end) in runs, as an evictor does. Notes what the kernel says it moved.
void take(const Range& source, const Range& target, std::size_t first, std::size_t end, std::size_t run,
          std::vector<char>& said) {
  for (std::size_t at = first; at < end;) {
    std::size_t wanted = std::min(run, end - at);
    std::int64_t done = real_kernel().move(target.address() + bytes_of_pages(at),
                                           source.address() + bytes_of_pages(at), bytes_of_pages(wanted));
    if (done == -EAGAIN) continue;
    std::size_t moved = done > 0 ? static_cast<std::size_t>(done) >> kPageShift : 0;
    std::fill_n(said.begin() + static_cast<std::ptrdiff_t>(at), moved, char{1});
    at += std::max<std::size_t>(moved, 1);  // what is refused stays
  }
}

// One round: huge pages taken apart by several threads. "" when each page is where MOVE said that it is. around(true)
// is called before the threads start, around(false) when they have ended.
template <typename Around>
std::string disagreement(std::size_t run, Around&& around) {
  Range source(MADV_HUGEPAGE), target(MADV_NOHUGEPAGE);
  constexpr std::size_t kPages = kBytes >> kPageShift, kShare = kPages / kThreads;
  for (std::size_t page = 0; page < kPages; ++page) std::fill_n(source.page(page), kWords, page + 1);
  // Huge pages come from before paging began: a page that a fault brings is small.
  if (real_kernel().register_range(source.address(), kBytes) != 0) return "cannot register";
  if (real_kernel().register_range(target.address(), kBytes) != 0) return "cannot register";

  std::vector<char> said(kPages);
  std::barrier together(kThreads);
  std::vector<std::thread> threads;
  around(true);
  for (unsigned i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      for (std::size_t huge = 0; huge < kHugePages; ++huge) {  // a quarter of each huge page for each thread
        together.arrive_and_wait();
        std::size_t first = huge * (kPages / kHugePages) + i * (kShare / kHugePages);
        take(source, target, first, first + kShare / kHugePages, run, said);
      }
    });
  for (std::thread& thread : threads) thread.join();
  around(false);

  std::vector<bool> left = there(source.address()), arrived = there(target.address());
  for (std::size_t page = 0; page < kPages; ++page) {
    const bool moved = said[page] != 0;
    std::string name = "page " + std::to_string(page);
    if (arrived[page] != moved) return name + (moved ? " was said to be moved" : " was moved without a word");
    if (left[page] == moved) return name + (moved ? " is in both places" : " is nowhere");
    const std::uint64_t* words = moved ? target.page(page) : source.page(page);
    if (words[0] != page + 1 || words[kWords - 1] != page + 1) return name + " has other bytes";
  }
  return "";
}

bool has_move() { return real_kernel().open().has_value() && real_kernel().features().move; }

TEST(Move, SaysWhatItMovedWhenThreadsTakeHugePagesApart) {
  if (!has_move()) GTEST_SKIP() << "no UFFDIO_MOVE here";
  for (int round = 0; round < 40; ++round)
    for (std::size_t run : {16, 64, 128})
      ASSERT_EQ(disagreement(run, [](bool) {}), "") << "round " << round << ", runs of " << run;
}

// The runtime then cannot look into /proc.
TEST(Move, SaysWhatItMovedAlsoWhenDescriptorsAreUsedUp) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP()
      << "the undefined-behaviour sanitizer looks at objects through a pipe, and finds no descriptor for one";
#endif
  if (!has_move()) GTEST_SKIP() << "no UFFDIO_MOVE here";
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  std::string found;
  for (int round = 0; round < 40 && found.empty(); ++round)
    found = disagreement(64, [&](bool begins) {
      rlimit now = before;
      if (begins) now.rlim_cur = 0;
      setrlimit(RLIMIT_NOFILE, &now);
    });
  EXPECT_EQ(found, "");
}

TEST(Move, TheKernelSaysWhatAMappingAllows) {
  ASSERT_TRUE(real_kernel().open().has_value());
  char* memory = static_cast<char*>(mmap(nullptr, 4 * kPageSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  auto address = reinterpret_cast<std::uintptr_t>(memory);
  if (real_kernel().mapping_at(address).protection == -ENOTTY) GTEST_SKIP() << "no PROCMAP_QUERY here (Linux 6.11)";
  for (int protection : {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC}) {
    ASSERT_EQ(mprotect(memory + kPageSize, kPageSize, protection), 0);
    EXPECT_EQ(real_kernel().mapping_at(address + kPageSize).protection, protection);
    EXPECT_EQ(real_kernel().mapping_at(address).protection, PROT_NONE);
  }
  munmap(memory, 4 * kPageSize);
  EXPECT_LT(real_kernel().mapping_at(address).protection, 0);
}

// A page that is shared since a fork is refused, until it is exclusive again; that does not need the right to write.
TEST(Move, APageThatIsSharedIsMadeExclusiveForReading) {
  if (!has_move()) GTEST_SKIP() << "no UFFDIO_MOVE here";
  Range source(MADV_NOHUGEPAGE), target(MADV_NOHUGEPAGE);
  ASSERT_EQ(real_kernel().register_range(target.address(), kBytes), 0);
  *source.page(0) = 7;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    char byte;
    close(ends[1]);
    _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);  // until its parent has seen
  }
  EXPECT_EQ(real_kernel().move(target.address(), source.address(), kPageSize), -EBUSY);
  ASSERT_EQ(mprotect(source.page(0), kPageSize, PROT_READ), 0);
  real_kernel().make_exclusive_for_reading(source.address());
  ASSERT_EQ(mprotect(source.page(0), kPageSize, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(real_kernel().move(target.address(), source.address(), kPageSize), static_cast<std::int64_t>(kPageSize));
  EXPECT_EQ(*target.page(0), 7u);
  close(ends[0]);
  close(ends[1]);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace hinterland
