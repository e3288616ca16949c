#include "paging/out/writable_moment.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "base/units.hpp"
#include "kernel/kernel.hpp"

namespace hinterland {
namespace {

// A page in the midst of a mapping, and a frame in the midst of another.
class WritableMomentTest : public testing::TestWithParam<int> {
 protected:
  WritableMomentTest() : page_(map() + kPageSize), frame_(map() + kPageSize) {
    std::memset(page_, 7, kPageSize);
    EXPECT_EQ(mprotect(page_ - kPageSize, 3 * kPageSize, GetParam()), 0);
  }
  ~WritableMomentTest() override {
    munmap(page_ - kPageSize, 3 * kPageSize);
    munmap(frame_ - kPageSize, 3 * kPageSize);
  }
  static char* map() {
    void* made = mmap(nullptr, 3 * kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(made, MAP_FAILED);
    return static_cast<char*>(made);
  }
  static int protection_of(const char* at) {
    return real_kernel().protection_of_mapping(reinterpret_cast<std::uintptr_t>(at));
  }
  // As a thread of the program would.
  bool program_may_read() const {
    int ends[2];
    if (pipe(ends) != 0) return false;
    const bool done = write(ends[1], page_, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return done;
  }

  char* page_;
  char* frame_;
};

TEST_P(WritableMomentTest, BothAreAlikeAndWritableAndThenAsBefore) {
  ASSERT_TRUE(real_kernel().open().has_value());
  if (protection_of(page_) == -ENOTTY) GTEST_SKIP() << "no PROCMAP_QUERY here (Linux 6.11)";
  {
    WritableMoment moment(page_, frame_, GetParam());
    if (!moment) GTEST_SKIP() << "no protection keys here, or memory may not be writable and executable";
    EXPECT_NE(protection_of(page_) & PROT_WRITE, 0);
    EXPECT_EQ(protection_of(page_), protection_of(frame_));
    EXPECT_EQ(program_may_read(), (GetParam() & PROT_READ) != 0);
    EXPECT_EQ(protection_of(page_ + kPageSize), GetParam());
  }
  EXPECT_EQ(protection_of(page_), GetParam());
  EXPECT_EQ(protection_of(frame_), PROT_READ | PROT_WRITE);
  frame_[0] = 1;
  ASSERT_EQ(mprotect(page_, kPageSize, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(page_[kPageSize - 1], 7);
}

TEST_P(WritableMomentTest, ThereAreAlwaysKeysForTheNext) {
  for (int i = 0; i < 100; ++i) {
    WritableMoment moment(page_, frame_, GetParam());
    if (i == 0 && !moment) GTEST_SKIP() << "none here";
    EXPECT_TRUE(moment) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Mappings, WritableMomentTest,
                         testing::Values(PROT_NONE, PROT_READ, PROT_READ | PROT_EXEC,
                                         PROT_READ | PROT_WRITE | PROT_EXEC));

// What cannot be made alike stays as it is.
TEST(WritableMoment, AFrameThatIsNotThereChangesNothing) {
  void* page = mmap(nullptr, kPageSize, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* frame = mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(frame, kPageSize);
  EXPECT_FALSE(WritableMoment(page, frame, PROT_READ | PROT_EXEC));
  ASSERT_TRUE(real_kernel().open().has_value());
  const int found = real_kernel().protection_of_mapping(reinterpret_cast<std::uintptr_t>(page));
  EXPECT_TRUE(found == (PROT_READ | PROT_EXEC) || found == -ENOTTY) << found;
  munmap(page, kPageSize);
}

// There a moment in which it may be read would be seen, and no key keeps out who may execute.
TEST(WritableMoment, MemoryThatMayOnlyBeExecutedIsLeftAlone) {
  void* page = mmap(nullptr, kPageSize, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* frame = mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_FALSE(WritableMoment(page, frame, PROT_EXEC));
  munmap(page, kPageSize);
  munmap(frame, kPageSize);
}

}  // namespace
}  // namespace hinterland
