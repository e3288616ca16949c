#include "far/descriptor_set.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>

namespace hinterland::far {
namespace {

constexpr int kFirst = 1000;

// As a program's own instruction: neither libc nor a sanitizer sees it.
void close_unseen(int descriptor) { ::syscall(SYS_close, descriptor); }

bool is_open(int descriptor) { return ::fcntl(descriptor, F_GETFD) >= 0; }

// Opens an event, which the program closes at once the first `times` times.
struct ClosedAtOnce {
  int times;
  int opened = 0;
  int operator()() {
    int event = ::eventfd(0, EFD_CLOEXEC);
    if (opened++ < times) close_unseen(event);
    return event;
  }
};

TEST(DescriptorSetTest, WhatIsClosedBeforeItIsMovedIsOpenedAgain) {
  DescriptorSet set;
  ClosedAtOnce open{3};
  const int moved = set.open_high(std::ref(open), -1, kFirst);
  EXPECT_EQ(open.opened, 4);
  EXPECT_GE(moved, kFirst);
  EXPECT_TRUE(is_open(moved));
  // To its old number, too.
  close_unseen(moved);
  ClosedAtOnce again{1};
  EXPECT_EQ(set.open_high(std::ref(again), moved, kFirst), moved);
  EXPECT_EQ(again.opened, 2);
  EXPECT_TRUE(is_open(moved));
  ::close(moved);
}

TEST(DescriptorSetTest, OnceOnlyIsSaid) {
  DescriptorSet set;
  ClosedAtOnce open{1};
  EXPECT_EQ(set.open_high_once(std::ref(open), -1, kFirst), -EBADF);
  const int closed = ::eventfd(0, EFD_CLOEXEC);
  close_unseen(closed);
  EXPECT_EQ(DescriptorSet::move_high(closed), -EBADF);
  EXPECT_EQ(set.copy_beside(closed, kFirst), -EBADF);
}

TEST(DescriptorSetTest, WhatCannotBeOpenedIsSaid) {
  DescriptorSet set;
  auto open = [] {
    errno = EMFILE;
    return -1;
  };
  EXPECT_EQ(set.open_high(open, -1, kFirst), -EMFILE);
  EXPECT_EQ(set.adopt(open), -EMFILE);
  std::array<int, 4> none;
  EXPECT_EQ(set.list(none.data(), none.size()), 0u);
}

// The number that it came with may be one of the program's a moment later.
TEST(DescriptorSetTest, ALowNumberIsLeftAsSoonAsThereIsAHighOne) {
  DescriptorSet set;
  rlimit usual, low;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  low = usual;
  low.rlim_cur = 64;
  auto open = [] { return ::eventfd(0, EFD_CLOEXEC); };
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const int kept = set.open_high(open, -1, kFirst);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  ASSERT_GE(kept, 0);
  EXPECT_LT(kept, 64);
  close_unseen(kept);
  const int moved = set.open_high(open, kept, kFirst);
  EXPECT_GE(moved, kFirst);
  EXPECT_FALSE(is_open(kept));
  ::close(moved);
}

TEST(DescriptorSetTest, ANewNumberIsNoneThatIsListed) {
  DescriptorSet set;
  auto open = [] { return ::eventfd(0, EFD_CLOEXEC); };
  const int lost = set.open_high(open, -1, kFirst);
  set.add(lost);
  close_unseen(lost);
  const int other = set.open_high(open, -1, kFirst);
  EXPECT_GT(other, lost);
  const int copy = set.copy_beside(other, kFirst);
  EXPECT_GE(copy, kFirst);
  EXPECT_NE(copy, lost);
  ::close(other);
  ::close(copy);
}

// Of two devices, and of parts of the runtime that have no set: each uses its number on until it misses what was
// there.
TEST(DescriptorSetTest, ANewNumberIsNobodyElsesOfTheRuntime) {
  DescriptorSet one, other;
  auto open = [] { return ::eventfd(0, EFD_CLOEXEC); };
  const int of_other = other.adopt(open);
  const int file = DescriptorSet::move_high(open());
  close_unseen(of_other);
  close_unseen(file);
  const int event = one.adopt(open);
  EXPECT_NE(event, of_other);
  EXPECT_NE(event, file);
  const int later = hinterland::move_high(open(), std::min(of_other, file));
  EXPECT_NE(later, of_other);
  EXPECT_NE(later, file);
  // Who needs his no longer leaves it to others.
  other.close(of_other);
  close_high(file);
  EXPECT_EQ(hinterland::move_high(open(), std::min(of_other, file)), std::min(of_other, file));
  for (int descriptor : {event, later, std::min(of_other, file)}) close_high(descriptor);
}

}  // namespace
}  // namespace hinterland::far
