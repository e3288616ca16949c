#include "paging/place/attendance.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace hinterland {
namespace {

int g_wakes = 0;

class AttendanceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    g_wakes = 0;
    attendance.allow_spares(2, [] { ++g_wakes; });
  }
  Attendance attendance;
};

TEST_F(AttendanceTest, CallsAHandlerForEachThreadOnce) {
  EXPECT_TRUE(attendance.alone());
  attendance.attend(0, 7);
  attendance.call(7);  // handler 0 is with it
  EXPECT_EQ(g_wakes, 0);
  attendance.call(8);
  attendance.call(8);
  EXPECT_EQ(g_wakes, 1);
  EXPECT_FALSE(attendance.alone());
  EXPECT_TRUE(attendance.is_called(1));
  EXPECT_FALSE(attendance.is_called(2));
  EXPECT_TRUE(attendance.by_another(8, 0));
  EXPECT_FALSE(attendance.by_another(8, 1)) << "that is the one";
  EXPECT_TRUE(attendance.by_another(7, 1));
  attendance.call(9);
  attendance.call(10);
  EXPECT_EQ(g_wakes, 2) << "two spares, and no third";
  EXPECT_FALSE(attendance.by_another(10, 0));
}

TEST_F(AttendanceTest, NoneIsCalledWhereNoneIsAllowed) {
  attendance.allow_spares(0, [] { ++g_wakes; });
  attendance.call(8);
  EXPECT_TRUE(attendance.alone());
  EXPECT_EQ(g_wakes, 0);
}

TEST_F(AttendanceTest, ASpareHandlerSleepsUntilItIsCalled) {
  std::uint32_t called_to = 0;
  std::thread spare([&] { called_to = attendance.wait_for_call(1); });
  attendance.call(8);
  spare.join();
  EXPECT_EQ(called_to, 8u);
  attendance.leave(1, 1'000'000);
  EXPECT_TRUE(attendance.alone());
  EXPECT_FALSE(attendance.by_another(8, 0));
}

TEST_F(AttendanceTest, CallsInVainTakeMoreAndMorePatienceUntilOneWasWorthIt) {
  std::uint32_t first = attendance.patience(), before = first;
  for (int i = 0; i < 4; ++i) {
    attendance.call(8);
    attendance.leave(1, 3);
    EXPECT_GT(attendance.patience(), before);
    before = attendance.patience();
  }
  for (int i = 0; i < 40; ++i) attendance.leave(1, 3);
  EXPECT_LT(attendance.patience(), 1u << 20) << "not for ever";
  attendance.leave(1, 1'000'000);
  EXPECT_EQ(attendance.patience(), first);
}

TEST_F(AttendanceTest, AForkedChildStartsWithHandler0Alone) {
  attendance.attend(0, 7);
  attendance.call(8);
  attendance.after_fork_in_child();
  EXPECT_TRUE(attendance.alone());
  EXPECT_FALSE(attendance.by_another(8, 0));
  EXPECT_FALSE(attendance.is_called(1));
  attendance.call(8);
  EXPECT_TRUE(attendance.is_called(1));
}

}  // namespace
}  // namespace hinterland
