// The memory calls at the window's edges, where a differential test of a program does not get to.
#include "preload/mappings.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/inside.hpp"
#include "base/stats.hpp"
#include "base/units.hpp"
#include "paging/pager.hpp"
#include "preload/raw.hpp"
#include "preload/testing/local_pager.hpp"

namespace hinterland {
namespace {

constexpr int kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;
constexpr int kReadWrite = PROT_READ | PROT_WRITE;

// The protection of the mapping at an address, as /proc/self/maps says; -1 when there is none.
int protection_at(std::uintptr_t address) {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  int found = -1;
  for (char line[512]; maps != nullptr && found < 0 && std::fgets(line, sizeof line, maps) != nullptr;) {
    unsigned long start, end;
    char read, write, execute;
    if (std::sscanf(line, "%lx-%lx %c%c%c", &start, &end, &read, &write, &execute) != 5) continue;
    if (start <= address && address < end)
      found = (read == 'r' ? PROT_READ : 0) | (write == 'w' ? PROT_WRITE : 0) | (execute == 'x' ? PROT_EXEC : 0);
  }
  if (maps != nullptr) std::fclose(maps);
  return found;
}

class Mappings : public testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(start_local_pager(64 * kMiB)); }
  static Pager& pager() { return *Pager::current(); }
  static std::uint64_t left_local() {
    return stat_page()->gauges[static_cast<std::size_t>(Gauge::left_local_bytes)].load();
  }
  static unsigned char& byte(std::uintptr_t address) { return *reinterpret_cast<unsigned char*>(address); }
  // Four pages around one of the window's edges, mapped in one call; 0 when the kernel has something at both.
  static std::uintptr_t map_over_edge() {
    const std::uintptr_t base = pager().window_base(), end = base + pager().window_bytes();
    std::uintptr_t edge = end;
    if (raw::failed(raw::mmap(end, 2 * kPageSize, PROT_NONE, kAnonymous | MAP_FIXED_NOREPLACE))) {
      if (raw::failed(raw::mmap(base - 2 * kPageSize, 2 * kPageSize, PROT_NONE, kAnonymous | MAP_FIXED_NOREPLACE)))
        return 0;
      edge = base;
    }
    const std::uintptr_t start = edge - 2 * kPageSize;
    std::intptr_t got = mappings::map(start, 4 * kPageSize, kReadWrite, kAnonymous | MAP_FIXED, -1, 0);
    EXPECT_EQ(got, static_cast<std::intptr_t>(start));
    return start;
  }
};

TEST_F(Mappings, WhatIsFarAndWhatIsNot) {
  auto where = [](std::size_t length, int flags) {
    std::intptr_t got = mappings::map(0, length, kReadWrite, flags, -1, 0);
    EXPECT_FALSE(raw::failed(got)) << got;
    auto address = static_cast<std::uintptr_t>(got);
    byte(address) = 1;
    bool far = pager().contains(address);
    EXPECT_EQ(mappings::unmap(address, length), 0);
    return far;
  };
  EXPECT_TRUE(where(kPageSize, kAnonymous));
  EXPECT_TRUE(where(100 * kMiB, kAnonymous | MAP_NORESERVE));
  EXPECT_TRUE(where(kPageSize, kAnonymous | MAP_POPULATE));
  EXPECT_FALSE(where(kPageSize, MAP_SHARED | MAP_ANONYMOUS));
  EXPECT_FALSE(where(kPageSize, kAnonymous | MAP_32BIT));
  EXPECT_FALSE(where(16 * kPageSize, kAnonymous | MAP_STACK));
  EXPECT_FALSE(where(100, kAnonymous));
}

TEST_F(Mappings, LeftLocalIsCounted) {
  std::uint64_t before = left_local();
  std::intptr_t got = mappings::map(0, 10 * kPageSize, kReadWrite, kAnonymous | MAP_32BIT, -1, 0);
  ASSERT_FALSE(raw::failed(got));
  auto address = static_cast<std::uintptr_t>(got);
  EXPECT_EQ(left_local(), before + 10 * kPageSize);
  EXPECT_EQ(mappings::unmap(address + 2 * kPageSize, kPageSize), 0);
  EXPECT_EQ(left_local(), before + 9 * kPageSize);
  std::intptr_t moved = mappings::remap(address, 2 * kPageSize, 5 * kPageSize, MREMAP_MAYMOVE, 0);
  ASSERT_FALSE(raw::failed(moved));
  EXPECT_EQ(left_local(), before + 12 * kPageSize);
  EXPECT_EQ(mappings::unmap(static_cast<std::uintptr_t>(moved), 5 * kPageSize), 0);
  EXPECT_EQ(mappings::unmap(address, 10 * kPageSize), 0);
  EXPECT_EQ(left_local(), before);
}

TEST_F(Mappings, HintsInTheWindow) {
  std::intptr_t got = mappings::map(0, 4 * kPageSize, kReadWrite, kAnonymous, -1, 0);
  auto address = static_cast<std::uintptr_t>(got);
  ASSERT_EQ(mappings::unmap(address + kPageSize, kPageSize), 0);
  EXPECT_EQ(mappings::map(address + kPageSize, kPageSize, kReadWrite, kAnonymous, -1, 0),
            got + static_cast<long>(kPageSize));
  std::intptr_t other = mappings::map(address, kPageSize, kReadWrite, kAnonymous, -1, 0);
  EXPECT_FALSE(raw::failed(other) || other == got);
  EXPECT_EQ(mappings::map(address, kPageSize, kReadWrite, kAnonymous | MAP_FIXED_NOREPLACE, -1, 0), -EEXIST);
  mappings::unmap(address, 4 * kPageSize);
  mappings::unmap(static_cast<std::uintptr_t>(other), kPageSize);
}

TEST_F(Mappings, RangesOverTheEdge) {
  std::uintptr_t start = map_over_edge();
  if (start == 0) GTEST_SKIP() << "the addresses on both sides of the window are taken";
  const std::size_t length = 4 * kPageSize;
  std::memset(reinterpret_cast<void*>(start), 7, length);
  unsigned char present[4] = {};
  EXPECT_EQ(mappings::core(start, length, present), 0);
  EXPECT_TRUE(present[0] & present[1] & present[2] & present[3] & 1);
  EXPECT_EQ(mappings::advise(start, length, MADV_DONTNEED), 0);
  EXPECT_EQ(byte(start) + byte(start + 3 * kPageSize), 0);
  EXPECT_EQ(mappings::protect(start + kPageSize, 2 * kPageSize, PROT_READ), 0);
  EXPECT_EQ(protection_at(start + kPageSize), PROT_READ);
  EXPECT_EQ(protection_at(start + 2 * kPageSize), PROT_READ);
  EXPECT_EQ(protection_at(start), kReadWrite);
  EXPECT_EQ(mappings::remap(start, length, length / 2, MREMAP_MAYMOVE, 0), -EFAULT);
  EXPECT_EQ(mappings::unmap(start + kPageSize, 2 * kPageSize), 0);
  EXPECT_EQ(mappings::advise(start, length, MADV_DONTNEED), -ENOMEM);
  EXPECT_EQ(mappings::protect(start, length, PROT_READ), -ENOMEM);
  EXPECT_EQ(mappings::core(start, length, present), -ENOMEM);
  EXPECT_EQ(mappings::unmap(start, length), 0);
}

TEST_F(Mappings, AFileOverTheEdge) {
  std::uintptr_t start = map_over_edge();
  if (start == 0) GTEST_SKIP() << "the addresses on both sides of the window are taken";
  char name[] = "/tmp/hinterland-file-XXXXXX";
  int file = mkstemp(name);
  ASSERT_GE(file, 0);
  unlink(name);
  for (char page = 1; page <= 4; ++page) {
    char bytes[kPageSize];
    std::memset(bytes, page, sizeof bytes);
    ASSERT_EQ(write(file, bytes, sizeof bytes), static_cast<ssize_t>(sizeof bytes));
  }
  ASSERT_EQ(mappings::map(start, 4 * kPageSize, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0),
            static_cast<std::intptr_t>(start));
  for (unsigned page = 0; page < 4; ++page) EXPECT_EQ(byte(start + page * kPageSize), page + 1);
  byte(static_cast<std::uintptr_t>(mappings::map(start, kPageSize, kReadWrite, kAnonymous | MAP_FIXED, -1, 0))) = 9;
  EXPECT_EQ(byte(start + kPageSize), 2);
  close(file);
  EXPECT_EQ(mappings::unmap(start, 4 * kPageSize), 0);
}

TEST_F(Mappings, AFailedMappingLeavesWhatIsThere) {
  auto address = static_cast<std::uintptr_t>(mappings::map(0, kPageSize, kReadWrite, kAnonymous, -1, 0));
  byte(address) = 5;
  EXPECT_EQ(mappings::map(address, kPageSize, PROT_READ, MAP_PRIVATE | MAP_FIXED, -1, 0), -EBADF);
  EXPECT_EQ(byte(address), 5);
  EXPECT_EQ(mappings::unmap(address, kPageSize), 0);
}

TEST_F(Mappings, MovingOutOfTheWindowAndIn) {
  auto far = static_cast<std::uintptr_t>(mappings::map(0, 3 * kPageSize, kReadWrite, kAnonymous, -1, 0));
  std::memset(reinterpret_cast<void*>(far), 3, 3 * kPageSize);
  auto outside = static_cast<std::uintptr_t>(raw::mmap(0, 5 * kPageSize, PROT_NONE, kAnonymous));
  ASSERT_FALSE(pager().contains(outside));
  constexpr int kMove = MREMAP_MAYMOVE | MREMAP_FIXED;
  EXPECT_EQ(mappings::remap(far, 3 * kPageSize, 5 * kPageSize, kMove, outside), static_cast<std::intptr_t>(outside));
  EXPECT_EQ(byte(outside) + byte(outside + 3 * kPageSize - 1), 6);
  EXPECT_EQ(byte(outside + 3 * kPageSize), 0);
  EXPECT_EQ(mappings::protect(far, kPageSize, PROT_READ), -ENOMEM);  // gone there
  auto target = static_cast<std::uintptr_t>(mappings::map(0, 5 * kPageSize, kReadWrite, kAnonymous, -1, 0));
  EXPECT_EQ(mappings::remap(outside, 5 * kPageSize, 5 * kPageSize, kMove, target),
            static_cast<std::intptr_t>(target));
  EXPECT_EQ(byte(target), 3);
  EXPECT_EQ(mappings::remap(target, kPageSize, kPageSize, kMove, outside + 1), -EINVAL);
  EXPECT_EQ(mappings::unmap(target, 5 * kPageSize), 0);
}

}  // namespace
}  // namespace hinterland
