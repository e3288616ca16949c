#include "paging/page/copy_mark.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace hinterland {
namespace {

TEST(CopyMarkTest, TellsACopyFromItsOriginal) {
  CopyMark mark;
  EXPECT_FALSE(mark.is_copy());
  ASSERT_TRUE(mark.create().has_value());
  EXPECT_FALSE(mark.is_copy());
  pid_t child = fork();
  if (child == 0) {
    bool is_copy = mark.is_copy();
    mark.set();  // as our own fork does
    _exit(is_copy && !mark.is_copy() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(mark.is_copy());
}

// Threads ask while paging begins; one that was told that it is a copy would end the program.
TEST(CopyMarkTest, TheOriginalIsNoCopyWhileItIsMade) {
  std::vector<CopyMark> marks(2000);
  std::atomic<CopyMark*> asked{nullptr};
  std::atomic<bool> over{false}, wrong{false};
  std::thread asks([&] {
    while (!over)
      if (CopyMark* mark = asked.load(); mark != nullptr && mark->is_copy()) wrong = true;
  });
  for (CopyMark& mark : marks) {
    asked = &mark;
    EXPECT_TRUE(mark.create().has_value());
  }
  over = true;
  asks.join();
  EXPECT_FALSE(wrong);
}

}  // namespace
}  // namespace hinterland
