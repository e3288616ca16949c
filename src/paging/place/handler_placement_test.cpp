#include "paging/place/handler_placement.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "kernel/scheduling.hpp"

namespace hinterland {
namespace {

// Waits until that thread waits in a system call: not for a page of its code, which is over in a moment.
void wait_until_it_sleeps(pid_t thread_id) {
  std::string path = "/proc/self/task/" + std::to_string(thread_id) + "/syscall";
  for (std::string call;; usleep(100))  // "running", "-1 ..." outside of calls, or the call's number
    if (std::ifstream(path) >> call && call.find_first_not_of("0123456789") == std::string::npos) return;
}

TEST(FollowCpuTest, MovesOnlyWhenNearlyAllFaultsComeFromThere) {
  FollowCpu follow;
  constexpr int kFaults = FollowCpu::kFaults;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(follow.on_fault(0, 0, kFaults), -1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(follow.on_fault(i % 2, 0, kFaults), -1);  // half here, half there
  for (int i = 0; i < 100; ++i) EXPECT_EQ(follow.on_fault(-1, 0, kFaults), -1);     // not known
  int moved = -1, faults = 0;
  while (moved == -1 && faults < 20) moved = follow.on_fault(2, 0, kFaults), ++faults;
  EXPECT_EQ(moved, 2);
  EXPECT_LE(faults, 8);
  EXPECT_EQ(follow.on_fault(2, 2, kFaults), -1);
  EXPECT_EQ(follow.on_fault(1, 2, kFaults), -1);
}

TEST(FollowCpuTest, AfterOneThreadItGoesAtItsSecondFault) {
  FollowCpu follow;
  EXPECT_EQ(follow.on_fault(2, 0, FollowCpu::kFaultsOfOne), -1);
  EXPECT_EQ(follow.on_fault(2, 0, FollowCpu::kFaultsOfOne), 2);
  EXPECT_EQ(follow.on_fault(1, 2, FollowCpu::kFaultsOfOne), -1);
  EXPECT_EQ(follow.on_fault(3, 2, FollowCpu::kFaultsOfOne), -1) << "another one than before";
}

TEST(LoneFaulterTest, AStreakOfOneThread) {
  LoneFaulter lone;
  for (std::uint32_t i = 1; i < LoneFaulter::kStreakMin; ++i) EXPECT_FALSE(lone.on_fault(7));
  EXPECT_TRUE(lone.on_fault(7));
  EXPECT_EQ(lone.thread_id(), 7u);
  LoneFaulter unnamed;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(unnamed.on_fault(0));  // not named by the kernel: may be several
}

TEST(LoneFaulterTest, StrangersWithAQuarterOfTheFaultsChangeNothing) {
  LoneFaulter lone;
  for (std::uint32_t i = 0; i < 4 * LoneFaulter::kStreakMin; ++i) lone.on_fault(i % 4 == 3 ? 8 : 7);
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(lone.on_fault(i % 4 == 3 ? 8 : 7));
  EXPECT_EQ(lone.thread_id(), 7u);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(lone.on_fault(8)) << "several in a row, too";
}

TEST(LoneFaulterTest, WithHalfOfTheFaultsTheyDo) {
  LoneFaulter lone;
  for (std::uint32_t i = 0; i < 10 * LoneFaulter::kStreakMin; ++i) lone.on_fault(7);
  int turns = 0;
  while (lone.on_fault(turns % 2 == 0 ? 8 : 7)) ASSERT_LT(++turns, 200);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(lone.on_fault(i % 2 == 0 ? 8 : 7));
}

TEST(LoneFaulterTest, AnotherThreadTakesOver) {
  LoneFaulter lone;
  for (std::uint32_t i = 0; i < 10 * LoneFaulter::kStreakMin; ++i) lone.on_fault(7);
  for (int i = 0; i < 100; ++i) lone.on_fault(8);
  EXPECT_EQ(lone.thread_id(), 8u);
  EXPECT_TRUE(lone.on_fault(8));
}

TEST(LoneFaulterTest, TakesLongerAfterItWentWrongUntilItGoesWellForLong) {
  LoneFaulter lone;
  lone.went_wrong();
  for (std::uint32_t i = 1; i < 8 * LoneFaulter::kStreakMin; ++i) EXPECT_FALSE(lone.on_fault(7));
  EXPECT_TRUE(lone.on_fault(7));
  for (int i = 0; i < 40; ++i) lone.went_wrong();
  EXPECT_FALSE(lone.on_fault(7));
  for (std::uint32_t i = 0; i < LoneFaulter::kGoodStreak; ++i) lone.on_fault(7);
  EXPECT_TRUE(lone.on_fault(7));
}

class HandlerPlacementTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!may_leave_idle_policy()) GTEST_SKIP() << "needs CAP_SYS_NICE, or RLIMIT_NICE of 20";
    placement.set_watchdog([] { ++wakes; });
    wakes = 0;
  }
  // In a thread of its own, which stands for the handler's: its policy is not the test's.
  template <typename Body>
  void as_handler(Body body) {
    std::thread([&] {
      placement.start();
      body();
    }).join();
  }
  void faults(std::uint32_t thread_id, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) placement.on_fault(thread_id), placement.served();
  }

  bool watched_until_the_end(int ticks) {
    for (int i = 0; i < ticks; ++i) {
      std::uint64_t again_ns = placement.watch();
      if (again_ns == HandlerPlacement::kNotWatched) return true;
      usleep(static_cast<useconds_t>(again_ns / 1000 + 1));
    }
    return false;
  }

  static inline int wakes = 0;
  std::atomic<bool> finished{false};
  std::unique_ptr<ProgramThreads> threads = std::make_unique<ProgramThreads>();
  Attendance attendance;
  Companions companions;
  HandlerPlacement placement{{*threads, attendance, companions}};
};

TEST_F(HandlerPlacementTest, MakesWayForALoneThreadAndNotForTwo) {
  as_handler([&] {
    faults(7, LoneFaulter::kStreakMin - 1);
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
    faults(7, 1);
    EXPECT_EQ(sched_getscheduler(0), SCHED_IDLE);
    EXPECT_EQ(wakes, 1);
    faults(8, 1);
    EXPECT_EQ(sched_getscheduler(0), SCHED_IDLE) << "one stranger now and then";
    for (int i = 0; i < 100; ++i) faults(8, 1), faults(7, 1);
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
    EXPECT_EQ(placement.watch(), HandlerPlacement::kNotWatched);
  });
}

TEST_F(HandlerPlacementTest, WithoutAWatchdogItNeverMakesWay) {
  placement.set_watchdog(nullptr);
  as_handler([&] {
    faults(7, 1000);
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
  });
}

TEST_F(HandlerPlacementTest, AHandlerThatStarvesGetsItsPriorityBack) {
  as_handler([&] {
    faults(7, LoneFaulter::kStreakMin);
    std::thread([&] {  // sees this thread waiting for the CPU, or running, and no progress
      EXPECT_TRUE(watched_until_the_end(10));
      finished = true;
    })
        .detach();
    while (!finished) continue;
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
    faults(7, LoneFaulter::kStreakMin);
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER) << "it went wrong, so it takes longer";
  });
}

// The handler stands still within a fault, while it could run; meanwhile the program's thread waits, or computes.
// Whether it takes longer from then on to make way.
bool goes_wrong_while_the_thread(bool waits, HandlerPlacement& placement, std::atomic<bool>& finished,
                                 auto&& watched) {
  std::atomic<pid_t> id{0};
  std::thread thread([&] {
    id = static_cast<pid_t>(syscall(SYS_gettid));
    while (!finished)
      if (waits) finished.wait(false);
  });
  while (id == 0) usleep(100);
  if (waits) wait_until_it_sleeps(id);
  auto thread_id = static_cast<std::uint32_t>(id.load());
  for (std::uint32_t i = 0; i < LoneFaulter::kStreakMin; ++i) placement.on_fault(thread_id), placement.served();
  placement.on_fault(thread_id);  // and not served
  std::thread watchdog([&] {
    EXPECT_TRUE(watched());
    finished = true;
    finished.notify_all();
  });
  while (!finished) continue;
  watchdog.join();
  thread.join();
  placement.served();
  EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
  placement.on_fault(thread_id), placement.served();
  return sched_getscheduler(0) == SCHED_OTHER;
}

TEST_F(HandlerPlacementTest, MakingWayWentWrongWhenTheThreadWaitsForAHandlerThatStarves) {
  as_handler([&] {
    auto watched = [&] { return watched_until_the_end(10); };
    EXPECT_TRUE(goes_wrong_while_the_thread(true, placement, finished, watched));
  });
}

TEST_F(HandlerPlacementTest, ItIsAsItShouldBeWhenTheThreadComputesForLong) {
  as_handler([&] {
    auto watched = [&] { return watched_until_the_end(10); };
    EXPECT_FALSE(goes_wrong_while_the_thread(false, placement, finished, watched));
  });
}

TEST_F(HandlerPlacementTest, ALoneThreadIsWatchedLessOftenThanOneOfSeveral) {
  as_handler([&] {
    threads->add(7, nullptr);
    faults(7, LoneFaulter::kStreakMin);
    std::uint64_t alone_ns = placement.watch();
    threads->add(8, nullptr);
    EXPECT_LT(placement.watch(), alone_ns / 2);
    threads->remove(8);
    EXPECT_GT(placement.watch(), alone_ns / 2);
  });
}

TEST_F(HandlerPlacementTest, WithNothingToDoTheWatchEnds) {
  as_handler([&] {
    faults(7, LoneFaulter::kStreakMin);
    auto handler = static_cast<pid_t>(syscall(SYS_gettid));
    std::thread watchdog([&] {
      wait_until_it_sleeps(handler);  // in join()
      EXPECT_FALSE(watched_until_the_end(10));
      EXPECT_TRUE(watched_until_the_end(100));
    });
    watchdog.join();
    EXPECT_FALSE(placement.makes_way());
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
    faults(7, 1);
    EXPECT_EQ(sched_getscheduler(0), SCHED_IDLE) << "the streak goes on";
  });
}

TEST_F(HandlerPlacementTest, ACompanionRunsElsewhereMeanwhile) {
  cpu_set_t before, meanwhile, after;
  sched_getaffinity(0, sizeof before, &before);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one CPU";
  companions.join();
  as_handler([&] {
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &here);
    sched_setaffinity(0, sizeof here, &here);
    faults(7, LoneFaulter::kStreakMin);
    sched_getaffinity(getpid(), sizeof meanwhile, &meanwhile);
    EXPECT_FALSE(CPU_ISSET(static_cast<unsigned>(sched_getcpu()), &meanwhile));
    for (int i = 0; i < 100; ++i) faults(8, 1), faults(7, 1);
    sched_getaffinity(getpid(), sizeof after, &after);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
  });
}

TEST_F(HandlerPlacementTest, CallsASpareHandlerWhenTwoThreadsFaultInTurnsAndStaysWithOne) {
  attendance.allow_spares(1, [] { ++wakes; });
  as_handler([&] {
    for (int i = 0; i < 100 && attendance.alone(); ++i) faults(7, 1), faults(8, 1);
    EXPECT_TRUE(attendance.is_called(1));
    wakes = 0;
    std::uint32_t left_to_us = attendance.by_another(7, 0) ? 8 : 7, others = 15 - left_to_us;
    for (std::uint32_t i = 0; i < LoneFaulter::kStreakMin; ++i) faults(left_to_us, 1), faults(others, 1);
    EXPECT_TRUE(placement.makes_way()) << "the other thread has a handler of its own";
    EXPECT_EQ(wakes, 1) << "of the watchdog";
    for (int i = 0; i < 100; ++i) faults(9, 1), faults(left_to_us, 1);
    EXPECT_FALSE(placement.makes_way()) << "a third";
  });
}

TEST_F(HandlerPlacementTest, OneStrangerNowAndThenCallsNobody) {
  attendance.allow_spares(1, [] { ++wakes; });
  as_handler([&] {
    for (int i = 0; i < 100; ++i) faults(7, LoneFaulter::kStreakMin), faults(8, 1);
    for (int i = 0; i < 1000; ++i) faults(7, 3), faults(8, 1);
    EXPECT_TRUE(attendance.alone());
    EXPECT_TRUE(placement.makes_way());
  });
}

TEST_F(HandlerPlacementTest, ASpareHandlerMakesWayAtOnceWhereTheThreadIs) {
  volatile std::uint32_t cpu = static_cast<std::uint32_t>(sched_getcpu());
  threads->add(8, &cpu);
  HandlerPlacement spare{{*threads, attendance, companions, 1}};
  spare.set_watchdog([] { ++wakes; });
  std::thread([&] {
    spare.start();
    EXPECT_FALSE(spare.go_to(9)) << "nobody knows where that thread is";
    EXPECT_TRUE(spare.go_to(8));
    EXPECT_EQ(sched_getscheduler(0), SCHED_IDLE);
    EXPECT_EQ(static_cast<std::uint32_t>(sched_getcpu()), cpu);
    for (int i = 0; i < 100; ++i) spare.on_fault(7), spare.served();
    EXPECT_TRUE(spare.makes_way()) << "a stranger's fault is served and changes nothing";
    spare.go_back();
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
  }).join();
}

}  // namespace
}  // namespace hinterland
