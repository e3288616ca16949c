#include "paging/place/program_threads.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace hinterland {
namespace {

TEST(ProgramThreadsTest, KnowsWhereAThreadRan) {
  auto threads = std::make_unique<ProgramThreads>();
  volatile std::uint32_t cpu = 3;
  EXPECT_EQ(threads->cpu_of(77), -1);
  EXPECT_EQ(threads->cpu_of(0), -1);  // a message without a thread
  threads->add(77, &cpu);
  EXPECT_EQ(threads->cpu_of(77), 3);
  cpu = 1;
  EXPECT_EQ(threads->cpu_of(77), 1);
  threads->remove(77);
  EXPECT_EQ(threads->cpu_of(77), -1);
  threads->add(78, nullptr);
  EXPECT_EQ(threads->cpu_of(78), -1);
  threads->clear();
  EXPECT_EQ(threads->cpu_of(78), -1);
}

TEST(ProgramThreadsTest, KnowsWhetherThereAreSeveral) {
  auto threads = std::make_unique<ProgramThreads>();
  threads->add(1, nullptr);
  threads->remove(7);  // never came
  EXPECT_FALSE(threads->several());
  threads->add(2, nullptr);
  EXPECT_TRUE(threads->several());
  threads->remove(1);
  EXPECT_FALSE(threads->several());
  threads->add(3, nullptr);
  threads->clear();
  threads->add(4, nullptr);
  EXPECT_FALSE(threads->several());
}

TEST(ProgramThreadsTest, CollidingIdsFindEachAPlaceUntilThereIsNone) {
  auto threads = std::make_unique<ProgramThreads>();
  std::array<volatile std::uint32_t, 20> cpus{};
  for (std::uint32_t i = 0; i < 20; ++i) {
    cpus[i] = i;
    threads->add(5 + i * ProgramThreads::kSlots, &cpus[i]);
  }
  for (std::uint32_t i = 0; i < 16; ++i)
    EXPECT_EQ(threads->cpu_of(5 + i * ProgramThreads::kSlots), static_cast<int>(i));
  EXPECT_EQ(threads->cpu_of(5 + 19 * ProgramThreads::kSlots), -1);  // not followed, only slower
  threads->remove(5);
  EXPECT_EQ(threads->cpu_of(5 + 15 * ProgramThreads::kSlots), 15);  // behind the gap
}

TEST(ProgramThreadsTest, ThreadsComeAndGoTogether) {
  auto threads = std::make_unique<ProgramThreads>();
  auto body = [&](std::uint32_t id) {
    volatile std::uint32_t cpu = id;
    for (int i = 0; i < 20'000; ++i) {
      threads->add(id, &cpu);
      EXPECT_EQ(threads->cpu_of(id), static_cast<int>(id));
      threads->remove(id);
    }
  };
  std::thread one(body, 9), two(body, 9 + ProgramThreads::kSlots);
  one.join();
  two.join();
}

}  // namespace
}  // namespace hinterland
