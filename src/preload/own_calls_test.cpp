#include "preload/own_calls.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <vector>

namespace hinterland::own_calls {
namespace {

using Code = std::vector<unsigned char>;

// With something before and behind it.
Found found_in(Code code) {
  Code all(64, 0x90);
  all.insert(all.end(), code.begin(), code.end());
  all.insert(all.end(), 64, 0x90);
  return scan(all);
}

TEST(OwnCalls, EachWayToLoadTheNumberIsKnown) {
  EXPECT_TRUE(found_in({0xb8, 28, 0, 0, 0, 0x0f, 0x05}).numbers.test(SYS_madvise));
  EXPECT_TRUE(found_in({0x48, 0xc7, 0xc0, 11, 0, 0, 0, 0x0f, 0x05}).numbers.test(SYS_munmap));
  EXPECT_TRUE(found_in({0x6a, 9, 0x58, 0x0f, 0x05}).numbers.test(SYS_mmap));
  // mov $436, %eax; mov %rdx, %r10; xor %edi, %edi
  Code far_before = {0xb8, 0xb4, 1, 0, 0, 0x49, 0x89, 0xd2, 0x31, 0xff, 0x0f, 0x05, 0xc3};
  EXPECT_TRUE(found_in(far_before).numbers.test(SYS_close_range));
}

TEST(OwnCalls, TheLastNumberCounts) {
  Found found = found_in({0xb8, 11, 0, 0, 0, 0xb8, 39, 0, 0, 0, 0x0f, 0x05});
  EXPECT_TRUE(found.none()) << "getpid concerns nobody";
}

TEST(OwnCalls, AFunctionForAnyNumberIsOne) {
  // mov %rdi, %rax; mov %rcx, %r10
  EXPECT_TRUE(found_in({0x48, 0x89, 0xf8, 0x49, 0x89, 0xca, 0x0f, 0x05, 0xc3}).any_number);
  EXPECT_TRUE(found_in({0x48, 0x89, 0xf8, 0x0f, 0x05, 0xc3}).none());
}

TEST(OwnCalls, WhatOnlyLooksLikeOneIsNone) {
  EXPECT_TRUE(found_in({0xb8, 3, 0, 0, 0, 0x48, 0x8b, 0x05, 0x40, 0x53, 0x0f, 0x05, 0x48}).none());
  EXPECT_TRUE(found_in({0xb8, 3, 0, 0, 0, 0xe8, 0x0f, 0x05, 0x12, 0x00}).none());
  EXPECT_TRUE(found_in({0xb8, 3, 0, 0, 0, 0x0f, 0x84, 0x0f, 0x05, 0x00, 0x00}).none());
  EXPECT_TRUE(found_in({0x41, 0xb8, 3, 0, 0, 0, 0x0f, 0x05}).none()) << "that is another register";
  EXPECT_TRUE(scan({}).none());
  EXPECT_TRUE(scan(Code{0x0f, 0x05}).none());
}

}  // namespace
}  // namespace hinterland::own_calls
