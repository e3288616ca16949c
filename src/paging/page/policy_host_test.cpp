// What threads tell the policy of, each for itself: all of it arrives, once, and before anything is asked.
#include "paging/page/policy_host.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "paging/testing/policies.hpp"
#include "paging/testing/victims.hpp"

namespace hinterland {
namespace {

constexpr std::uint32_t kPages = 1 << 16;

class PolicyHostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(pages_.create(kPages));
    ASSERT_TRUE(host_.create(&kSecondChancePolicy, pages_));
    for (std::uint32_t page = 0; page < kPages; ++page) pages_.note_used({page});
    host_.gather_arrivals(true);
  }
  std::vector<hl_page> victims(std::size_t most) { return testing::victims_of(host_, most); }

  PageTable pages_;
  PolicyHost host_;
};

// What is kept by place has room for all places, of which many more may lie anywhere than are ever in use.
TEST(PolicyHostOfAllAddresses, PoolsAreKeptForTheLastPlace) {
  constexpr std::uint64_t kPlaces = std::uint64_t{1} << 35;
  constexpr std::size_t kGuardBytes = 16 * kGiB;
  PageTable pages;
  ASSERT_TRUE(pages.create(kPlaces, kPages));
  // The kernel gives addresses from above to below, so that what follows the host's tables cannot be touched.
  void* guard = raw_mmap(nullptr, kGuardBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  ASSERT_NE(guard, MAP_FAILED);
  PolicyHost host;
  ASSERT_TRUE(host.create(&kSecondChancePolicy, pages));
  const int pool = host.open_pool(&kFifoPolicy, PolicyHost::kCommonShare, 7, 0);
  ASSERT_GT(pool, 0);
  const PageIndex last{kPlaces - 1};
  host.assign({{kPlaces - PageTable::kGroupPages}, PageTable::kGroupPages}, pool);
  pages.note_used(last);
  EXPECT_EQ(host.read_ahead_max(last, 64), 7u);
  EXPECT_EQ(host.read_ahead_max({0}, 64), 64u);
  host.arrived(last, 1, HL_ARRIVAL_FAULT);
  std::vector<hl_page> victims(8);
  victims.resize(host.choose_victims(victims));
  ASSERT_EQ(victims.size(), 1u);
  EXPECT_EQ(host.page_of(victims[0]), last);
  raw_munmap(guard, kGuardBytes);
}

TEST_F(PolicyHostTest, IsAskedForPagesThatHaveJustArrived) {
  for (std::uint32_t page : {3u, 900u, 5u}) host_.arrived({page}, 1, HL_ARRIVAL_FAULT);
  EXPECT_EQ(victims(8).size(), 3u);
  EXPECT_EQ(host_.size(), 0u);
  host_.arrived({64}, 40, HL_ARRIVAL_READ_AHEAD);
  EXPECT_EQ(host_.size(), 40u);
}

TEST_F(PolicyHostTest, WhatDepartsRightAfterItArrivedIsForgotten) {
  host_.arrived({7}, 1, HL_ARRIVAL_FAULT);
  host_.departed({7}, 1);
  EXPECT_EQ(host_.size(), 0u);
  host_.arrived({8}, 1, HL_ARRIVAL_FAULT);
  host_.cold({8});
  EXPECT_EQ(victims(8), std::vector<hl_page>{8});  // once
  EXPECT_EQ(host_.size(), 0u);
}

TEST_F(PolicyHostTest, HearsOfEachPageOnceHoweverManyThreadsTell) {
  constexpr std::uint32_t kThreads = 6, kShare = kPages / kThreads;
  std::atomic<std::uint32_t> at_work{kThreads};
  std::vector<std::thread> threads;
  for (std::uint32_t number = 0; number < kThreads; ++number)
    threads.emplace_back([&, number] {
      for (std::uint32_t i = 0; i < kShare; ++i) host_.arrived({number * kShare + i}, 1, HL_ARRIVAL_HINT);
      --at_work;
    });
  std::vector<unsigned> seen(kPages);
  for (bool done = false; !done;) {
    done = at_work.load() == 0;  // then what is asked next is the rest
    for (std::vector<hl_page> chosen = victims(100); !chosen.empty(); chosen = victims(100))
      for (hl_page page : chosen) ++seen[page];
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t page = 0; page < kThreads * kShare; ++page) ASSERT_EQ(seen[page], 1u) << page;
}

TEST_F(PolicyHostTest, AForkedChildFindsWhatWasGathered) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    for (std::uint32_t i = 0; !stop; ++i) host_.arrived({1024 + i % 1024}, 1, HL_ARRIVAL_FAULT);
  });
  for (std::uint32_t page = 0; page < 5; ++page) host_.arrived({page}, 1, HL_ARRIVAL_FAULT);
  for (int round = 0; round < 20; ++round) {
    host_.lock_for_fork();
    pid_t child = fork();
    if (child == 0) {
      host_.after_fork_in_child();
      alarm(120);  // a lock that nobody lets go of
      std::uint32_t first_five = 0;
      for (hl_page page : victims(2048)) first_five += page < 5;
      _exit(first_five == 5 ? 0 : 1);
    }
    host_.unlock_after_fork();
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  other.join();
}

// Small budgets: the order in which pages came counts, whatever CPUs they came on.
TEST_F(PolicyHostTest, KeepsTheOrderWhereItDoesNotGather) {
  host_.gather_arrivals(false);
  for (std::uint32_t page = 0; page < 50; ++page) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(page % 2, &one);
    sched_setaffinity(0, sizeof one, &one);  // refused where there is one CPU, and then it says less
    host_.arrived({page}, 1, HL_ARRIVAL_FAULT);
  }
  std::vector<hl_page> chosen = victims(50);
  ASSERT_EQ(chosen.size(), 50u);
  for (std::uint32_t page = 0; page < 50; ++page) EXPECT_EQ(chosen[page], page);
}

}  // namespace
}  // namespace hinterland
