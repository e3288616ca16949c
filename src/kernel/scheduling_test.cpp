#include "kernel/scheduling.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
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

}  // namespace
}  // namespace hinterland
