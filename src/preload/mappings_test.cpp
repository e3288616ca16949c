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
#include "preload/known_places.hpp"
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
  static void SetUpTestSuite() {
    ASSERT_TRUE(start_local_pager(64 * kMiB));
    known_places::start();
  }
  static std::uintptr_t map_anywhere(std::size_t length, int flags) {
    return static_cast<std::uintptr_t>(mappings::map(0, length, kReadWrite, flags, -1, 0));
  }
  // A free place for so many bytes, outside of the window.
  static std::uintptr_t free_place(std::size_t length) {
    auto place = static_cast<std::uintptr_t>(raw::mmap(0, length, PROT_NONE, kAnonymous));
    raw::munmap(place, length);
    return place;
  }
  static std::intptr_t map_at(std::uintptr_t address, std::size_t length, int flags) {
    return mappings::map(address, length, kReadWrite, flags, -1, 0);
  }
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
  EXPECT_TRUE(where(kPageSize, kAnonymous | MAP_32BIT));
  EXPECT_FALSE(where(16 * kPageSize, kAnonymous | MAP_32BIT | MAP_STACK));
  EXPECT_FALSE(where(16 * kPageSize, MAP_SHARED | MAP_ANONYMOUS | MAP_32BIT));
  EXPECT_FALSE(where(16 * kPageSize, kAnonymous | MAP_STACK));
  EXPECT_FALSE(where(100, kAnonymous));
}

TEST_F(Mappings, LeftLocalIsCounted) {
  std::uint64_t before = left_local();
  std::intptr_t got = mappings::map(0, 10 * kPageSize, kReadWrite, kAnonymous | MAP_STACK, -1, 0);
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

// --- outside of the window

TEST_F(Mappings, BelowFourGiB) {
  const std::uintptr_t address = map_anywhere(8 * kPageSize, kAnonymous | MAP_32BIT);
  EXPECT_EQ(address >> 32, 0u);
  EXPECT_TRUE(pager().contains(address) && !pager().in_window(address));
  EXPECT_FALSE(pager().contains(address + 8 * kPageSize));
  std::memset(reinterpret_cast<void*>(address), 4, 8 * kPageSize);
  EXPECT_EQ(mappings::advise(address + kPageSize, kPageSize, MADV_DONTNEED), 0);
  EXPECT_EQ(byte(address) + byte(address + kPageSize), 4);
  EXPECT_EQ(mappings::unmap(address + 2 * kPageSize, 2 * kPageSize), 0);
  EXPECT_TRUE(pager().contains(address + kPageSize));
  EXPECT_FALSE(pager().contains(address + 2 * kPageSize));
  EXPECT_EQ(protection_at(address + 2 * kPageSize), -1) << "the kernel has the addresses back";
  EXPECT_EQ(mappings::advise(address, 8 * kPageSize, MADV_DONTNEED), -ENOMEM);
  EXPECT_EQ(mappings::unmap(address, 8 * kPageSize), 0);
}

TEST_F(Mappings, AHoleEndsWhatPopulates) {
  const std::uintptr_t address = map_anywhere(3 * kPageSize, kAnonymous | MAP_32BIT);
  byte(address + 2 * kPageSize) = 6;
  ASSERT_EQ(mappings::protect(address + kPageSize, kPageSize, PROT_NONE), 0);
  EXPECT_EQ(mappings::advise(address, 3 * kPageSize, MADV_POPULATE_READ), -EINVAL);
  ASSERT_EQ(mappings::unmap(address, kPageSize), 0);
  EXPECT_EQ(mappings::advise(address, 3 * kPageSize, MADV_POPULATE_READ), -ENOMEM);
  EXPECT_EQ(mappings::advise(address, 3 * kPageSize, MADV_DONTNEED), -ENOMEM);
  EXPECT_EQ(byte(address + 2 * kPageSize), 0) << "other advice goes on";
  EXPECT_EQ(mappings::unmap(address, 3 * kPageSize), 0);
}

TEST_F(Mappings, AtAnAddressOfTheProgramsChoice) {
  const std::uintptr_t place = free_place(8 * kPageSize);
  for (int flags : {kAnonymous, kAnonymous | MAP_FIXED, kAnonymous | MAP_FIXED_NOREPLACE}) {
    ASSERT_EQ(map_at(place, 4 * kPageSize, flags), static_cast<std::intptr_t>(place)) << flags;
    EXPECT_TRUE(pager().contains(place)) << flags;
    byte(place) = 7;
    EXPECT_EQ(map_at(place, 4 * kPageSize, kAnonymous | MAP_FIXED_NOREPLACE), -EEXIST);
    EXPECT_EQ(byte(place), 7);
    EXPECT_EQ(mappings::unmap(place, 4 * kPageSize), 0);
    EXPECT_FALSE(pager().contains(place));
  }
}

TEST_F(Mappings, AHintThatCannotBeFollowedIsNone) {
  const std::uintptr_t place = free_place(kMiB);
  ASSERT_EQ(map_at(place, kMiB, kAnonymous), static_cast<std::intptr_t>(place));
  const auto other = static_cast<std::uintptr_t>(map_at(place, kMiB, kAnonymous));
  EXPECT_NE(other, place);
  EXPECT_TRUE(pager().in_window(other)) << "a large one lies where any other does";
  const auto near = static_cast<std::uintptr_t>(map_at(place, kPageSize, kAnonymous));
  EXPECT_FALSE(pager().contains(near)) << "a small one, where the kernel puts it";
  EXPECT_EQ(mappings::unmap(near, kPageSize) + mappings::unmap(other, kMiB) + mappings::unmap(place, kMiB), 0);
}

TEST_F(Mappings, OverWhatTheProgramMappedItselfAndNothingElse) {
  const std::uintptr_t own = map_anywhere(4 * kPageSize, MAP_SHARED | MAP_ANONYMOUS);
  ASSERT_FALSE(pager().contains(own));
  EXPECT_EQ(map_at(own + kPageSize, kPageSize, kAnonymous | MAP_FIXED), static_cast<std::intptr_t>(own + kPageSize));
  EXPECT_FALSE(pager().contains(own));
  EXPECT_TRUE(pager().contains(own + kPageSize));
  EXPECT_FALSE(pager().contains(own + 2 * kPageSize));
  EXPECT_EQ(mappings::unmap(own, 4 * kPageSize), 0);
  const auto others = static_cast<std::uintptr_t>(raw::mmap(0, 4 * kPageSize, PROT_NONE, kAnonymous));
  const std::uint64_t before = left_local();
  EXPECT_EQ(map_at(others, 2 * kPageSize, kAnonymous | MAP_FIXED), static_cast<std::intptr_t>(others));
  EXPECT_FALSE(pager().contains(others)) << "it may be a library's";
  EXPECT_EQ(left_local(), before + 2 * kPageSize);
  EXPECT_EQ(mappings::unmap(others, 4 * kPageSize), 0);
}

TEST_F(Mappings, AFileOverHalfOfAMapping) {
  char name[] = "/tmp/hinterland-file-XXXXXX";
  int file = mkstemp(name);
  ASSERT_GE(file, 0);
  unlink(name);
  ASSERT_EQ(ftruncate(file, 4 * kPageSize), 0);
  ASSERT_EQ(pwrite(file, "x", 1, 2 * kPageSize), 1);
  const std::uintptr_t address = map_anywhere(4 * kPageSize, kAnonymous | MAP_32BIT);
  byte(address) = byte(address + 3 * kPageSize) = 9;
  ASSERT_EQ(mappings::map(address + 2 * kPageSize, 4 * kPageSize, PROT_READ, MAP_PRIVATE | MAP_FIXED, -1, 0), -EBADF);
  EXPECT_EQ(byte(address + 3 * kPageSize), 9) << "what cannot be mapped changes nothing";
  ASSERT_EQ(
      mappings::map(address + 2 * kPageSize, 2 * kPageSize, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 2 * kPageSize),
      static_cast<std::intptr_t>(address + 2 * kPageSize));
  EXPECT_EQ(byte(address), 9);
  EXPECT_EQ(byte(address + 2 * kPageSize), 'x');
  EXPECT_TRUE(pager().contains(address + kPageSize));
  EXPECT_FALSE(pager().contains(address + 2 * kPageSize));
  EXPECT_EQ(mappings::protect(address, 4 * kPageSize, PROT_READ), 0) << "of both kinds";
  // And far memory over both.
  EXPECT_EQ(map_at(address + kPageSize, 2 * kPageSize, kAnonymous | MAP_FIXED),
            static_cast<std::intptr_t>(address + kPageSize));
  EXPECT_TRUE(pager().contains(address + 2 * kPageSize));
  EXPECT_EQ(byte(address + 2 * kPageSize), 0);
  EXPECT_FALSE(pager().contains(address + 3 * kPageSize));
  EXPECT_EQ(mappings::unmap(address, 4 * kPageSize), 0);
  close(file);
}

TEST_F(Mappings, MovingAtAddressesOfTheProgramsChoice) {
  constexpr int kMove = MREMAP_MAYMOVE | MREMAP_FIXED;
  const std::uintptr_t low = map_anywhere(4 * kPageSize, kAnonymous | MAP_32BIT);
  std::memset(reinterpret_cast<void*>(low), 3, 4 * kPageSize);
  const auto inside =
      static_cast<std::uintptr_t>(mappings::remap(low, 4 * kPageSize, 6 * kPageSize, MREMAP_MAYMOVE, 0));
  EXPECT_TRUE(pager().contains(inside));
  EXPECT_FALSE(pager().contains(low) && inside != low);
  EXPECT_EQ(byte(inside + 3 * kPageSize), 3);
  const std::uintptr_t place = free_place(6 * kPageSize);
  EXPECT_EQ(mappings::remap(inside, 6 * kPageSize, 6 * kPageSize, kMove, place), static_cast<std::intptr_t>(place));
  EXPECT_TRUE(pager().contains(place)) << "a free place may be far";
  EXPECT_EQ(byte(place), 3);
  const auto others = static_cast<std::uintptr_t>(raw::mmap(0, 6 * kPageSize, PROT_NONE, kAnonymous));
  EXPECT_EQ(mappings::remap(place, 6 * kPageSize, 6 * kPageSize, kMove, others), static_cast<std::intptr_t>(others));
  EXPECT_FALSE(pager().contains(others)) << "somebody else's is not";
  EXPECT_FALSE(pager().contains(place));
  EXPECT_EQ(byte(others), 3);
  const std::uintptr_t target = map_anywhere(6 * kPageSize, kAnonymous | MAP_32BIT);
  EXPECT_EQ(mappings::remap(others, 6 * kPageSize, 6 * kPageSize, kMove, target), static_cast<std::intptr_t>(target));
  EXPECT_FALSE(pager().contains(target)) << "what is local stays local where it goes";
  EXPECT_EQ(byte(target), 3);
  EXPECT_EQ(mappings::unmap(target, 6 * kPageSize), 0);
}

// Far, shared, a hole: moved to another place in one call, and cut off.
TEST_F(Mappings, MovingMappingsOfSeveralKinds) {
  const std::uintptr_t from = map_anywhere(4 * kPageSize, kAnonymous | MAP_32BIT), to = free_place(4 * kPageSize);
  ASSERT_EQ(map_at(from + kPageSize, kPageSize, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED),
            static_cast<std::intptr_t>(from + kPageSize));
  ASSERT_EQ(mappings::unmap(from + 2 * kPageSize, kPageSize), 0);
  byte(from) = 1;
  byte(from + kPageSize) = 2;
  byte(from + 3 * kPageSize) = 4;
  EXPECT_EQ(mappings::remap(from, 4 * kPageSize, 6 * kPageSize, MREMAP_MAYMOVE, 0), -EFAULT);
  EXPECT_EQ(mappings::remap(from, 4 * kPageSize, std::size_t{1} << 60, MREMAP_MAYMOVE, 0), -EINVAL);
  EXPECT_EQ(mappings::remap(from + 2 * kPageSize, 2 * kPageSize, 2 * kPageSize, MREMAP_MAYMOVE | MREMAP_FIXED,
                            from + kPageSize),
            -EINVAL)
      << "onto itself, and that is said before anything of the hole at its start";
  EXPECT_EQ(mappings::remap(from, 4 * kPageSize, 4 * kPageSize, MREMAP_MAYMOVE | MREMAP_FIXED, to),
            static_cast<std::intptr_t>(to));
  EXPECT_EQ(byte(to) + byte(to + kPageSize) + byte(to + 3 * kPageSize), 7);
  EXPECT_EQ(protection_at(to + 2 * kPageSize), -1);
  EXPECT_FALSE(pager().overlaps(from, 4 * kPageSize));
  EXPECT_TRUE(pager().contains(to + 3 * kPageSize));
  EXPECT_EQ(mappings::remap(to, 4 * kPageSize, kPageSize, 0, 0), static_cast<std::intptr_t>(to));
  EXPECT_EQ(protection_at(to + 3 * kPageSize), -1) << "cut off, whatever it is";
  EXPECT_EQ(mappings::unmap(to, 4 * kPageSize), 0);
}

// Over far memory and others: natively one mapping, which can grow and moves as one.
TEST_F(Mappings, WhatIsNotFarIsOneMapping) {
  const std::uintptr_t from = map_anywhere(3 * kPageSize, kAnonymous | MAP_32BIT), to = free_place(4 * kPageSize);
  ASSERT_EQ(mappings::unmap(from + 2 * kPageSize, kPageSize), 0);
  ASSERT_EQ(map_at(from, 3 * kPageSize, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED), static_cast<std::intptr_t>(from));
  EXPECT_FALSE(pager().overlaps(from, 3 * kPageSize));
  byte(from + 2 * kPageSize) = 3;
  EXPECT_EQ(mappings::remap(from, 3 * kPageSize, 4 * kPageSize, MREMAP_MAYMOVE | MREMAP_FIXED, to),
            static_cast<std::intptr_t>(to));
  EXPECT_EQ(byte(to + 2 * kPageSize), 3);
  EXPECT_EQ(mappings::unmap(to, 4 * kPageSize), 0);
}

TEST_F(Mappings, WhatReplacesNothingChangesNothing) {
  const std::uintptr_t place = map_anywhere(2 * kPageSize, kAnonymous | MAP_32BIT);
  ASSERT_EQ(mappings::unmap(place, kPageSize), 0);
  EXPECT_EQ(map_at(place, 2 * kPageSize, kAnonymous | MAP_FIXED_NOREPLACE), -EEXIST);
  EXPECT_EQ(protection_at(place), -1);
  EXPECT_EQ(mappings::unmap(place, 2 * kPageSize), 0);
}

TEST_F(Mappings, MovingALotOfSeveralKindsAndCuttingItOff) {
  const std::uintptr_t from = map_anywhere(3 * kPageSize, kAnonymous | MAP_32BIT), to = free_place(kPageSize);
  ASSERT_EQ(map_at(from + kPageSize, kPageSize, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED),
            static_cast<std::intptr_t>(from + kPageSize));
  byte(from) = 1;
  EXPECT_EQ(mappings::remap(from, 3 * kPageSize, kPageSize, MREMAP_MAYMOVE | MREMAP_FIXED, to),
            static_cast<std::intptr_t>(to));
  EXPECT_EQ(byte(to), 1);
  EXPECT_EQ(protection_at(from + kPageSize), -1);
  EXPECT_EQ(protection_at(from + 2 * kPageSize), -1);
  EXPECT_FALSE(pager().overlaps(from, 3 * kPageSize));
  EXPECT_EQ(mappings::unmap(to, kPageSize), 0);
}

TEST_F(Mappings, MovingWhatCannotBeMovedLeavesTheTarget) {
  constexpr int kMove = MREMAP_MAYMOVE | MREMAP_FIXED;
  const std::uintptr_t target = map_anywhere(4 * kPageSize, kAnonymous | MAP_32BIT);
  ASSERT_EQ(mappings::unmap(target + 3 * kPageSize, kPageSize), 0);
  ASSERT_FALSE(raw::failed(raw::mmap(target + 3 * kPageSize, kPageSize, PROT_NONE, kAnonymous | MAP_FIXED)));
  byte(target) = 5;
  const std::uintptr_t hole = map_anywhere(2 * kPageSize, kAnonymous);
  ASSERT_EQ(mappings::unmap(hole, 2 * kPageSize), 0);
  EXPECT_EQ(mappings::remap(hole, 2 * kPageSize, 4 * kPageSize, kMove, target), -EFAULT) << "far, onto what is not";
  const std::uintptr_t local = map_anywhere(kMiB, MAP_SHARED | MAP_ANONYMOUS);
  ASSERT_FALSE(pager().contains(local));
  ASSERT_EQ(mappings::unmap(local + kPageSize, kMiB - kPageSize), 0);
  EXPECT_EQ(mappings::remap(local, 2 * kPageSize, 3 * kPageSize, kMove, target), -EFAULT) << "more than is there";
  const std::uintptr_t stack = map_anywhere(kPageSize, kAnonymous | MAP_STACK);
  ASSERT_FALSE(pager().contains(stack));
  EXPECT_EQ(mappings::remap(stack, 0, kPageSize, kMove, target), -EINVAL) << "private, twice";
  EXPECT_TRUE(pager().contains(target));
  EXPECT_EQ(byte(target), 5);
  EXPECT_EQ(mappings::remap(local, kPageSize, 2 * kPageSize, kMove, target), static_cast<std::intptr_t>(target));
  EXPECT_FALSE(pager().contains(target));
  EXPECT_TRUE(pager().contains(target + 2 * kPageSize));
  EXPECT_EQ(mappings::unmap(stack, kPageSize) + mappings::unmap(target, 4 * kPageSize), 0);
}

}  // namespace
}  // namespace hinterland
