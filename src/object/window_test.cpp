// The object window: blocks become far and come back, and who uses them without a guard finds them at home.
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <random>
#include <thread>

#include "object/guards_test_support.hpp"

namespace hinterland::object::testing {
namespace {

constexpr std::size_t kMany = 300'000, kWords = 8;  // 64 bytes: with their headers, three times the least memory

TEST(Window, BlocksBecomeFarAndComeBack) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  Blocks blocks(kMany, kWords);
  ASSERT_EQ(blocks.size(), kMany);
  EXPECT_TRUE(wait_until_left(kMany / 2));
  EXPECT_EQ(blocks.count_wrong(), 0u);
  EXPECT_GT(current_heap()->figures().brought.load(), kMany / 2);
  EXPECT_EQ(window->pages_brought_home(), 0u);
  EXPECT_LE(current_heap()->memory().used(), 2 * current_heap()->memory().limit());  // evacuators may be kept waiting
}

TEST(Window, WhatIsWrittenLeavesAsItIs) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  Blocks blocks(kMany, kWords);
  for (std::size_t i = 0; i < kMany; ++i) blocks.fill(i, i + 7);
  EXPECT_EQ(blocks.count_wrong(7), 0u);
  EXPECT_EQ(blocks.count_wrong(7), 0u);
}

TEST(Window, SizesAndAlignment) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  for (std::size_t bytes = 0; bytes <= Window::kBlockMax; bytes += bytes < 200 ? 1 : 61) {
    void* block = allocate_block(bytes, false);
    ASSERT_NE(block, nullptr) << bytes;
    EXPECT_TRUE(Window::contains(block));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 16, 0u);
    EXPECT_GE(size_of_block(block), std::max<std::size_t>(bytes, 1));
    EXPECT_LT(size_of_block(block), bytes + 17);
    release_block(block);
    EXPECT_EQ(size_of_block(block), 0u);
  }
  EXPECT_EQ(allocate_block(Window::kBlockMax + 1, false), nullptr);
}

TEST(Window, SlotsAreUsedAgain) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  void* first = allocate_block(40, false);
  release_block(first);
  void* second = allocate_block(40, true);
  EXPECT_EQ(first, second);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(guarded_read(static_cast<std::uint64_t*>(second) + i), 0u);
  release_block(second);
}

TEST(WindowDeathTest, ABlockThatIsFreedTwice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  auto* block = static_cast<char*>(allocate_block(100, false));
  EXPECT_EXIT(release_block(block + 16), ::testing::KilledBySignal(SIGABRT), "no block of the object window begins");
  release_block(block);
  EXPECT_EXIT(release_block(block), ::testing::KilledBySignal(SIGABRT), "freed before");
}

// --- without guards
// --------------------------------------------------------------------------------------------------

bool holds_plainly(const std::uint64_t* block, std::uint64_t id, std::size_t words) {
  std::uint64_t expected[256];
  for (std::size_t at = 0; at < words; ++at) expected[at] = Blocks::word_of(id, at);
  return std::memcmp(block, expected, words * 8) == 0;
}

TEST(WindowHome, WhoHasNoGuardFindsTheBytes) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  Blocks blocks(kMany, kWords);
  EXPECT_TRUE(wait_until_left(kMany / 2));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kMany; i += 13) wrong += !holds_plainly(blocks[i], i, kWords);
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(window->pages_brought_home(), 1000u);
  // One more while the keeper sends another one apart.
  EXPECT_LE(window->pages_home(), current_heap()->memory_limit() / 8 / kPageSize + 1);
  EXPECT_EQ(blocks.count_wrong(), 0u);
}

TEST(WindowHome, BothWaysSeeWhatTheOtherHasWritten) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  Blocks blocks(kMany / 3, kWords);
  std::mt19937_64 random(5);
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t which = random() % blocks.size();
    std::uint64_t* word = blocks[which];
    const std::uint64_t value = random();
    const bool plainly = random() % 2 != 0;
    if (plainly)
      *static_cast<volatile std::uint64_t*>(word) = value;
    else
      guarded_write(word, value);
    EXPECT_EQ(plainly ? guarded_read(word) : *static_cast<volatile std::uint64_t*>(word), value);
    guarded_write(word, Blocks::word_of(which, 0));
  }
  EXPECT_EQ(blocks.count_wrong(), 0u);
}

TEST(WindowHome, BlocksThatAreMadeAndFreedThere) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  auto* first = static_cast<char*>(allocate_block(64, true));
  EXPECT_EQ(*static_cast<volatile char*>(first), 0);  // its page is home
  auto* second = static_cast<char*>(allocate_block(64, true));
  ASSERT_EQ(second, first + 64);
  std::memset(second, 7, 64);
  EXPECT_EQ(guarded_read_1(second + 63), 7u);
  release_block(second);
  auto* again = static_cast<char*>(allocate_block(50, true));
  EXPECT_EQ(again, second);
  EXPECT_EQ(guarded_read_1(again + 20), 0u);
  release_block(again);
  release_block(first);
}

TEST(WindowHome, TheKernelFindsTheBytes) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  Blocks blocks(kMany, kWords);
  EXPECT_TRUE(wait_until_left(kMany / 2));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  for (std::size_t i = 0; i < 2000; ++i) {
    std::uint64_t got[kWords];
    ASSERT_EQ(write(ends[1], blocks[i], sizeof got), static_cast<ssize_t>(sizeof got)) << std::strerror(errno);
    ASSERT_EQ(read(ends[0], got, sizeof got), static_cast<ssize_t>(sizeof got));
    EXPECT_TRUE(holds_plainly(got, i, kWords));
    got[0] = 1;
    ASSERT_EQ(write(ends[1], got, sizeof got), static_cast<ssize_t>(sizeof got));
    ASSERT_EQ(read(ends[0], blocks[i], sizeof got), static_cast<ssize_t>(sizeof got)) << std::strerror(errno);
    EXPECT_EQ(guarded_read(blocks[i]), 1u);
  }
  close(ends[0]);
  close(ends[1]);
}

// A program can close what it did not open: the holder has another copy.
TEST(WindowHome, ADescriptorThatIsClosed) {
  constexpr unsigned kOfThread = O_EXCL;  // PIDFD_THREAD, Linux 6.9
  const long of_this = syscall(SYS_pidfd_open, getpid(), kOfThread);
  if (of_this < 0) GTEST_SKIP() << "this kernel has no descriptors of threads, by which it is taken back";
  close(static_cast<int>(of_this));
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  Blocks blocks(kMany / 3, kWords);
  for (int descriptor = 900; descriptor < 1000; ++descriptor) {
    char link[64], target[64] = {};
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    if (readlink(link, target, sizeof target - 1) > 0 && std::strstr(target, "userfaultfd") != nullptr)
      close(descriptor);
  }
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < blocks.size(); i += 101) wrong += !holds_plainly(blocks[i], i, kWords);
  EXPECT_EQ(wrong, 0u);
}

// --- fork
// ------------------------------------------------------------------------------------------------------------

TEST(WindowFork, ChildAndParentHaveAllBlocks) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  Blocks blocks(kMany, kWords);
  for (std::size_t i = 0; i < 5000; ++i) EXPECT_TRUE(holds_plainly(blocks[i], i, kWords));  // some are home
  std::atomic<bool> ending{false};
  std::thread beside([&] {
    std::mt19937_64 random(3);
    while (!ending.load()) {
      const std::size_t i = random() % kMany;
      if (i % 2 == 0)
        EXPECT_TRUE(blocks.holds(i, i));
      else
        EXPECT_TRUE(holds_plainly(blocks[i], i, kWords));
    }
  });
  for (int round = 0; round < 3; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(100);
      std::size_t wrong = blocks.count_wrong();
      for (std::size_t i = 0; i < kMany; i += 57) wrong += !holds_plainly(blocks[i], i, kWords);
      blocks.fill(1, 2);  // which is not the parent's
      _exit(wrong == 0 ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  ending = true;
  beside.join();
  EXPECT_EQ(blocks.count_wrong(), 0u);
}

// --- failures
// --------------------------------------------------------------------------------------------------------

void lose(bool plainly) {
  std::signal(SIGBUS, SIG_DFL);  // of a sanitizer, which has a handler of its own
  WindowForTest window("sim:fail_reads=1,inner=mem:");
  Blocks blocks(kMany, kWords);
  std::size_t right = 0;
  for (std::size_t i = 0; i < kMany; ++i) right += plainly ? holds_plainly(blocks[i], i, kWords) : blocks.holds(i, i);
  std::fprintf(stderr, "%zu of %zu blocks came back\n", right, kMany);
}

TEST(WindowDeathTest, ALostBlockRaisesSigbus) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  {
    WindowForTest window;
    HL_WINDOW_OR_SKIP(window);
  }
  for (const bool plainly : {false, true})
    EXPECT_EXIT(lose(plainly), ::testing::KilledBySignal(SIGBUS), "is lost: sim:.*Input/output error");
}

}  // namespace
}  // namespace hinterland::object::testing
