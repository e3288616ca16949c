#include "kernel/scheduling.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace hinterland {
namespace {

int own_nice() { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); }

TEST(Scheduling, GoesBeforeOthersAndBack) {
  int usual = own_nice();
  int before = 0, after = 0, of_another = 0;
  bool permitted = false;
  std::thread([&] { permitted = setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), -20) == 0; }).join();
  std::thread([&] {
    go_before_others();
    before = own_nice();
    take_usual_priority();
    after = own_nice();
    std::thread([&] { of_another = own_nice(); }).join();
  }).join();
  EXPECT_EQ(before, permitted ? -20 : usual);
  EXPECT_EQ(after, usual);
  EXPECT_EQ(of_another, usual) << "threads inherit it";
  EXPECT_EQ(own_nice(), usual);
}

TEST(Scheduling, AThreadThatWentBeforeNobodyKeepsItsOwnPriority) {
  int after = 0;
  const int lower = std::min(own_nice() + 3, 19);
  std::thread([&] {
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), lower);
    take_usual_priority();
    after = own_nice();
  }).join();
  EXPECT_EQ(after, lower);
}

TEST(Scheduling, TellsWhoRuns) {
  std::atomic<pid_t> id{0};
  std::atomic<bool> over{false};
  std::thread computing([&] {
    id = gettid();
    while (!over) continue;
  });
  while (id == 0) usleep(100);
  ProcFile state;
  ASSERT_EQ(state.open(path_of_thread_state(id).data()), 0);
  EXPECT_TRUE(is_runnable(state));
  over = true;
  computing.join();
  while (is_runnable(state)) usleep(100);  // the kernel is not quite done with it

  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  id = 0;
  std::thread waiting([&] {
    id = gettid();
    char byte;
    static_cast<void>(!read(ends[0], &byte, 1));
  });
  while (id == 0) usleep(100);
  ASSERT_EQ(state.open(path_of_thread_state(id).data()), 0);
  while (is_runnable(state)) usleep(100);
  close(ends[1]);
  waiting.join();
  close(ends[0]);
}

}  // namespace
}  // namespace hinterland
