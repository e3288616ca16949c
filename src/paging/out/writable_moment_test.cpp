#include "paging/out/writable_moment.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "base/units.hpp"
#include "kernel/kernel.hpp"
#include "paging/testing/mapping_limit.hpp"

namespace hinterland {
namespace {

constexpr std::size_t kPages = 3;  // of a moment
constexpr std::size_t kBytes = kPages * kPageSize, kMapping = kBytes + 2 * kPageSize;

// Pages in the midst of a mapping, and frames in the midst of another.
class WritableMomentTest : public ::testing::TestWithParam<int> {
 protected:
  WritableMomentTest() : page_(map() + kPageSize), frame_(map() + kPageSize) {
    std::memset(page_, 7, kBytes);
    EXPECT_EQ(mprotect(page_ - kPageSize, kMapping, GetParam()), 0);
  }
  ~WritableMomentTest() override {
    munmap(page_ - kPageSize, kMapping);
    munmap(frame_ - kPageSize, kMapping);
  }
  static char* map() {
    void* made = mmap(nullptr, kMapping, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(made, MAP_FAILED);
    return static_cast<char*>(made);
  }
  static int protection_of(const char* at) {
    return real_kernel().mapping_at(reinterpret_cast<std::uintptr_t>(at)).protection;
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
    WritableMoment moment(page_, frame_, kBytes, GetParam());
    if (!moment.open()) GTEST_SKIP() << "no protection keys here, or memory may not be writable and executable";
    for (std::size_t at = 0; at < kBytes; at += kPageSize) {
      EXPECT_NE(protection_of(page_ + at) & PROT_WRITE, 0);
      EXPECT_EQ(protection_of(page_ + at), protection_of(frame_ + at));
    }
    EXPECT_EQ(program_may_read(), (GetParam() & PROT_READ) != 0);
    EXPECT_EQ(protection_of(page_ - kPageSize), GetParam());
    EXPECT_EQ(protection_of(page_ + kBytes), GetParam());
  }
  for (std::size_t at = 0; at < kBytes; at += kPageSize) {
    EXPECT_EQ(protection_of(page_ + at), GetParam());
    EXPECT_EQ(protection_of(frame_ + at), PROT_READ | PROT_WRITE);
    frame_[at] = 1;
  }
  ASSERT_EQ(mprotect(page_, kBytes, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(page_[kBytes - 1], 7);
}

TEST_P(WritableMomentTest, ThereAreAlwaysKeysForTheNext) {
  for (int i = 0; i < 100; ++i) {
    WritableMoment moment(page_, frame_, kBytes, GetParam());
    const bool is_open = moment.open();
    if (i == 0 && !is_open) GTEST_SKIP() << "none here";
    EXPECT_TRUE(is_open) << i;
  }
}

// Pages whose neighbours may be written, which would become one with them, and need two mappings more to be on their
// own again: there are none.
TEST_P(WritableMomentTest, ItEndsAtTheLimitOfMappings) {
  if (std::string reason = testing::why_no_mapping_limit(); !reason.empty()) GTEST_SKIP() << reason;
  ASSERT_TRUE(real_kernel().open().has_value());
  if (protection_of(page_) == -ENOTTY) GTEST_SKIP() << "no PROCMAP_QUERY here (Linux 6.11)";
  const int neighbours = GetParam() | PROT_READ | PROT_WRITE;
  ASSERT_EQ(mprotect(page_ - kPageSize, kMapping, neighbours), 0);
  ASSERT_EQ(mprotect(page_, kBytes, GetParam()), 0);
  std::optional<testing::MappingLimit> limit;  // outlives the moment
  {
    WritableMoment moment(page_, frame_, kBytes, GetParam());
    if (!moment.open()) GTEST_SKIP() << "no protection keys here, or memory may not be writable and executable";
    limit.emplace();
    ASSERT_TRUE(limit->reached());
    EXPECT_NE(protection_of(page_) & PROT_WRITE, 0);
  }
  EXPECT_EQ(protection_of(page_), GetParam());
  EXPECT_EQ(protection_of(page_ - kPageSize), neighbours);
  EXPECT_EQ(protection_of(frame_), PROT_READ | PROT_WRITE);
}

INSTANTIATE_TEST_SUITE_P(Mappings, WritableMomentTest,
                         ::testing::Values(PROT_NONE, PROT_READ, PROT_READ | PROT_EXEC,
                                           PROT_READ | PROT_WRITE | PROT_EXEC));

// What cannot be made alike stays as it is.
TEST(WritableMoment, AFrameThatIsNotThereChangesNothing) {
  void* page = mmap(nullptr, kPageSize, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* frame = mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(frame, kPageSize);
  EXPECT_FALSE(WritableMoment(page, frame, kPageSize, PROT_READ | PROT_EXEC).open());
  ASSERT_TRUE(real_kernel().open().has_value());
  const int found = real_kernel().mapping_at(reinterpret_cast<std::uintptr_t>(page)).protection;
  EXPECT_TRUE(found == (PROT_READ | PROT_EXEC) || found == -ENOTTY) << found;
  munmap(page, kPageSize);
}

// There a moment in which it may be read would be seen, and no key keeps out who may execute.
TEST(WritableMoment, MemoryThatMayOnlyBeExecutedIsLeftAlone) {
  void* page = mmap(nullptr, kPageSize, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* frame = mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_FALSE(WritableMoment(page, frame, kPageSize, PROT_EXEC).open());
  munmap(page, kPageSize);
  munmap(frame, kPageSize);
}

}  // namespace
}  // namespace hinterland
