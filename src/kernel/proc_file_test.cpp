#include "kernel/proc_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/raw_call.hpp"
#include "base/runtime_descriptors.hpp"

namespace hinterland {
namespace {

std::string text_of(ProcFile& file) {
  char text[64];
  const std::int64_t length = file.read_at(text, sizeof text, 0);
  return length < 0 ? "error " + std::to_string(-length) : std::string(text, static_cast<std::size_t>(length));
}

// By a system call that the preloaded library would not see.
void close_unseen(int descriptor) { raw::call(SYS_close, descriptor); }

TEST(ProcFileTest, StaysOpenUnderAHighNumber) {
  ProcFile file;
  EXPECT_EQ(text_of(file), "error 9") << "not opened yet";
  ASSERT_EQ(file.open("/proc/self/comm"), 0);
  const int descriptor = file.descriptor();
  EXPECT_GE(descriptor, kFirstRuntimeDescriptor);
  EXPECT_TRUE(is_noted_runtime_descriptor(descriptor));
  const std::string text = text_of(file);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(text_of(file), text);
  EXPECT_EQ(file.descriptor(), descriptor);
  ASSERT_EQ(file.open("/proc/self/stat"), 0);
  EXPECT_EQ(text_of(file).rfind(std::to_string(getpid()), 0), 0U);
}

TEST(ProcFileTest, WhatTheProgramClosedIsOpenedAgain) {
  ProcFile file;
  ASSERT_EQ(file.open("/proc/self/comm"), 0);
  const std::string text = text_of(file);
  close_unseen(file.descriptor());
  EXPECT_EQ(text_of(file), text);
  EXPECT_GE(file.descriptor(), kFirstRuntimeDescriptor);
}

TEST(ProcFileTest, AFileOfTheProgramInItsPlaceIsNeitherReadNorClosed) {
  ProcFile file;
  ASSERT_EQ(file.open("/proc/self/comm"), 0);
  const std::string text = text_of(file);
  const int taken = file.descriptor(), other = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(raw::call(SYS_dup3, other, taken, O_CLOEXEC), taken);
  EXPECT_EQ(text_of(file), text);
  EXPECT_NE(file.descriptor(), taken);
  EXPECT_FALSE(is_noted_runtime_descriptor(taken)) << "the program's now";
  EXPECT_EQ(lseek(taken, 0, SEEK_CUR), 0);
  const int second = file.descriptor();
  ASSERT_EQ(raw::call(SYS_dup3, other, second, O_CLOEXEC), second);
  ProcFile::close_all_after_fork();  // as a child would
  EXPECT_EQ(lseek(second, 0, SEEK_CUR), 0);
  for (int descriptor : {taken, second, other}) close(descriptor);
}

TEST(ProcFileTest, AnErrorStaysOne) {
  ProcFile file;
  EXPECT_EQ(file.open("/proc/self/no-such-file"), -ENOENT);
  EXPECT_EQ(text_of(file), "error 2");
  EXPECT_EQ(file.descriptor(), -ENOENT);
  EXPECT_EQ(file.open("/proc/self/comm"), 0);
  EXPECT_EQ(file.control(0xffff, nullptr), -ENOTTY);
  char* nowhere = reinterpret_cast<char*>(std::uintptr_t{1});
  EXPECT_EQ(file.read_at(nowhere, 1, 0), -EFAULT);
}

TEST(ProcFileTest, InAForkedChildItIsTheChilds) {
  ProcFile file;
  ASSERT_EQ(file.open("/proc/self/stat"), 0);
  const pid_t child = fork();
  if (child == 0) {
    const int inherited = file.descriptor();
    ProcFile::close_all_after_fork();
    const bool closed = fcntl(inherited, F_GETFD) < 0;
    const bool its_own = file.open("/proc/self/stat") == 0 && text_of(file).rfind(std::to_string(getpid()), 0) == 0;
    _exit(closed && its_own ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text_of(file).rfind(std::to_string(getpid()), 0), 0U);
}

}  // namespace
}  // namespace hinterland
