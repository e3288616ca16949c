// Pages that are copied in before anybody touches them, by several threads, through descriptors of their own.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/runtime_descriptors.hpp"
#include "kernel/kernel.hpp"
#include "kernel/scheduling.hpp"

namespace hinterland {
namespace {

constexpr std::size_t kPages = 512;

class CopyUnwaited : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!real_kernel().open()) GTEST_SKIP() << "userfaultfd is not to be had here";
    real_kernel().expect_unwaited_copies();
    void* mapped = mmap(nullptr, bytes_of_pages(kPages), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    target_ = reinterpret_cast<std::uintptr_t>(mapped);
    ASSERT_EQ(real_kernel().register_range(target_, bytes_of_pages(kPages)), 0);
  }
  void TearDown() override {
    if (target_ != 0) munmap(reinterpret_cast<void*>(target_), bytes_of_pages(kPages));
  }
  std::uintptr_t page(std::size_t number) const { return target_ + bytes_of_pages(number); }
  std::uint64_t* words(std::size_t number) const { return reinterpret_cast<std::uint64_t*>(page(number)); }
  std::int64_t bring(std::size_t number, bool protect = false) const {
    alignas(kPageSize) thread_local std::uint64_t source[kPageSize / 8];
    for (std::uint64_t& word : source) word = number + 1;
    std::int64_t done = -EAGAIN;
    while (done == -EAGAIN) done = real_kernel().copy_unwaited(page(number), source, kPageSize, protect);
    return done;
  }
  void expect_pages(std::size_t count) const {
    for (std::size_t number = 0; number < count; ++number) {
      ASSERT_EQ(words(number)[0], number + 1);
      ASSERT_EQ(words(number)[kPageSize / 8 - 1], number + 1);
    }
  }
  static std::vector<int> descriptors() {
    std::vector<int> all;
    for (int each = next_runtime_descriptor(0); each >= 0; each = next_runtime_descriptor(each + 1))
      all.push_back(each);
    return all;
  }

  std::uintptr_t target_ = 0;
};

TEST_F(CopyUnwaited, BringsPagesOfSeveralThreads) {
  std::atomic<std::size_t> next{0}, done{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (std::size_t number; (number = next++) < kPages;) done += bring(number) == kPageSize;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, kPages);
  expect_pages(kPages);
  EXPECT_EQ(bring(0), -EEXIST);
}

TEST_F(CopyUnwaited, ProtectsWhatIsToBeClean) {
  if (!real_kernel().features().write_protect) GTEST_SKIP() << "this kernel has no write protection by userfaultfd";
  ASSERT_EQ(bring(0, true), kPageSize);
  std::thread writer([&] { words(0)[1] = 77; });
  FaultMessage message{};
  ASSERT_EQ(real_kernel().read_faults({&message, 1}, true), 1);
  EXPECT_TRUE(message.write_protect);
  EXPECT_EQ(real_kernel().write_protect(page(0), kPageSize, false), 0);
  writer.join();
  EXPECT_EQ(words(0)[1], 77u);
}

TEST_F(CopyUnwaited, WakesNobodyByItself) {
  std::atomic<bool> read{false};
  std::thread reader([&] {
    EXPECT_EQ(words(3)[0], 4u);
    read = true;
  });
  FaultMessage message{};
  ASSERT_EQ(real_kernel().read_faults({&message, 1}, true), 1);
  EXPECT_EQ(bring(3), kPageSize);
  usleep(20'000);
  EXPECT_FALSE(read);
  EXPECT_EQ(real_kernel().wake(page(3), kPageSize), 0);
  reader.join();
}

TEST_F(CopyUnwaited, SaysThatNothingIsThere) {
  munmap(reinterpret_cast<void*>(page(8)), kPageSize);
  EXPECT_EQ(bring(8), -ENOENT);
  EXPECT_EQ(bring(9), kPageSize);
}

bool is_userfaultfd(int descriptor) {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), none) ==
         "anon_inode:[userfaultfd]";
}

// A program that closes by raw system calls what it did not open.
TEST_F(CopyUnwaited, DoesWithoutDescriptorsThatWereTakenAway) {
  std::size_t taken_away = 0;
  for (int descriptor : descriptors())
    if (descriptor != real_kernel().fault_descriptor() && is_userfaultfd(descriptor))
      taken_away += syscall(SYS_close, descriptor) == 0;
  EXPECT_EQ(taken_away != 0, several_cpus_allowed());
  for (std::size_t number = 0; number < 64; ++number) EXPECT_EQ(bring(number), kPageSize);
  expect_pages(64);
}

TEST_F(CopyUnwaited, IsReadyAgainInAForkedChild) {
  std::size_t before = descriptors().size();
  ASSERT_TRUE(real_kernel().open());  // as a forked child does; those from before are closed
  EXPECT_EQ(descriptors().size(), before);
}

}  // namespace
}  // namespace hinterland
