// Pages that the heap freed and takes again without clearing them.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <thread>

#include "paging/testing/page_machine.hpp"
#include "paging/testing/policies.hpp"

namespace hinterland::testing {
namespace {

constexpr std::uint32_t kPages = 80;  // more than one run

MachineOptions with_room() {
  MachineOptions options;
  options.policy = &kFifoPolicy;
  options.budget_pages = 256;
  return options;
}

// The first kPages pages are freed, and were touched before as many others.
class RenewedPages : public ::testing::Test {
 protected:
  RenewedPages() {
    machine.map(0, 2 * kPages, PROT_READ | PROT_WRITE);
    for (std::uint32_t page = 0; page < 2 * kPages; ++page) machine.write(page);
    machine.decommit(0, kPages);
  }
  std::uint32_t resident(std::uint32_t first) {
    std::uint32_t found = 0;
    for (std::uint32_t page = first; page < first + kPages; ++page)
      found += machine.core().pages[{page}].load().state() == PageState::resident;
    return found;
  }
  PageWord word(std::uint32_t page) { return machine.core().pages[{page}].load(); }

  PageMachine machine{with_room(), 1};
};

TEST_F(RenewedPages, LeaveAfterThoseThatWereTouchedMeanwhile) {
  machine.commit_uncleared(0, kPages);
  machine.evict(kPages / 4);
  EXPECT_EQ(resident(0), kPages);
  EXPECT_LT(resident(kPages), kPages);
  EXPECT_EQ(machine.check_invariants(0), "");
}

TEST_F(RenewedPages, AreNotThrownAway) {
  machine.commit_uncleared(0, kPages);
  for (std::uint32_t page = 0; page < kPages; ++page) machine.write(page);
  machine.evict(2 * kPages);
  EXPECT_EQ(resident(0), 0u);
  for (std::uint32_t page = 0; page < kPages; ++page) machine.read(page);
  EXPECT_EQ(machine.failure(), "");
  EXPECT_EQ(machine.check_invariants(0), "");
}

TEST_F(RenewedPages, AreZerosWhereTheyLeftMeanwhile) {
  machine.evict(kPages / 2);
  ASSERT_EQ(resident(0), kPages / 2);
  machine.commit_uncleared(0, kPages);
  for (std::uint32_t page = 0; page < kPages; ++page) machine.read(page);
  EXPECT_EQ(machine.failure(), "");
  EXPECT_EQ(machine.check_invariants(0), "");
}

// Two threads that each waited for what the other one holds would wait for ever.
TEST_F(RenewedPages, AreNotHeldWhileOneIsWaitedFor) {
  constexpr std::uint32_t kBusy = 20;
  PageWord held;
  ASSERT_TRUE(machine.core().pages[{kBusy}].try_lock(&held));
  std::thread heap([this] { machine.pager().commit_uncleared(machine.address_of(0), bytes_of_pages(kPages)); });
  const auto given_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (word(kBusy - 1).discardable() && std::chrono::steady_clock::now() < given_up) std::this_thread::yield();
  for (std::uint32_t page = 0; page < kBusy; ++page)
    EXPECT_FALSE(word(page).busy() || word(page).discardable()) << page;
  machine.core().transitions.none({kBusy}, held);
  heap.join();
  for (std::uint32_t page = 0; page < kPages; ++page)
    EXPECT_FALSE(word(page).busy() || word(page).discardable()) << page;
}

}  // namespace
}  // namespace hinterland::testing
