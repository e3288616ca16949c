// A policy that says which of its victims are worth a frame: those stay in one and come back without being fetched,
// and no frame holds memory of the others.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>

#include "base/stats.hpp"
#include "hinterland/policy.hpp"
#include "paging/testing/page_machine.hpp"

namespace hinterland::testing {
namespace {

constexpr std::uint32_t kPages = 64;

// FIFO otherwise.
class Chosen {
 public:
  static inline bool (*answer)(hl_page) = nullptr;

  bool create(const hl_policy_env& environment) { return links_.create(environment); }
  bool holds(hl_page page) const { return links_.in_list(page); }
  std::uint64_t size() const { return pages_.size(); }
  void arrived(hl_page page, hl_arrival, std::uint8_t) { pages_.push_back(links_, page); }
  void departed(hl_page page) { pages_.remove(links_, page); }
  hl_page choose(std::uint32_t&) { return pages_.pop_front(links_); }
  bool worth_a_frame(hl_page page) { return answer(page); }

 private:
  hl::policy::PageLinks links_;
  hl::policy::PageList pages_;
};
constexpr hl_policy_ops kChosen = hl::policy::ops_of<Chosen>("chosen", "");

class WorthAFrameTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Chosen::answer = [](hl_page) { return false; };
    MachineOptions options;
    options.policy = &kChosen;
    machine_ = std::make_unique<PageMachine>(options, 1);
    machine_->map(0, kPages, PROT_READ | PROT_WRITE);
    for (std::uint32_t page = 0; page < kPages; ++page) machine_->write(page);
  }
  void TearDown() override {
    EXPECT_EQ(machine_->check_invariants(0), "");
    EXPECT_EQ(machine_->failure(), "");
  }
  std::uint32_t count_in(PageState wanted) {
    std::uint32_t found = 0;
    for (std::uint32_t page = 0; page < kPages; ++page)
      found += machine_->core().pages[{page}].load().state() == wanted;
    return found;
  }
  // Of the pages that the program sees, and those in frames.
  std::int64_t local() { return machine_->core().budget.local(); }

  std::unique_ptr<PageMachine> machine_;
};

TEST_F(WorthAFrameTest, ChangedPagesThatAreNotLeaveNoMemoryBehind) {
  machine_->evict(16);
  EXPECT_EQ(count_in(PageState::parked), 0u);
  EXPECT_EQ(local(), count_in(PageState::resident));
  EXPECT_EQ(machine_->core().frames.used(), 0u);
  for (std::uint32_t page = 0; page < kPages; ++page) machine_->read(page);
}

TEST_F(WorthAFrameTest, PagesOfZerosLeaveNoMemoryBehindEither) {
  for (std::uint32_t page = 0; page < kPages; ++page) machine_->write(page, true);
  for (bool answer : {true, false}) {
    Chosen::answer = answer ? [](hl_page) { return true; } : [](hl_page) { return false; };
    machine_->evict(16);
    EXPECT_EQ(count_in(PageState::parked), 0u);
    EXPECT_EQ(local(), count_in(PageState::resident));
  }
}

TEST_F(WorthAFrameTest, NothingStaysInAFrameWhereTheDeviceAnswersAtOnce) {
  Chosen::answer = [](hl_page) { return true; };
  machine_->core().second_chance.saves_a_fetch = false;
  for (int clean : {0, 1}) {
    machine_->evict(16);
    EXPECT_EQ(count_in(PageState::parked), 0u) << clean;
    EXPECT_EQ(local(), count_in(PageState::resident)) << clean;
    for (std::uint32_t page = 0; page < kPages; ++page) machine_->read(page);
  }
}

TEST_F(WorthAFrameTest, OthersComeBackWithoutBeingFetched) {
  for (int round = 0; round < 100 && local() > 0; ++round) machine_->evict(kPages);
  ASSERT_EQ(count_in(PageState::far), kPages);
  for (std::uint32_t page = 0; page < 32; ++page) machine_->read(page);  // clean ones
  Chosen::answer = [](hl_page page) { return page % 2 == 0; };
  machine_->evict(8);
  const std::uint32_t parked = count_in(PageState::parked);
  EXPECT_GT(parked, 0u);
  std::uint64_t fetched = machine_->far_fetches(), refaults = stat_page()->counters[Counter::faults_refault];
  for (std::uint32_t page = 0; page < 32; page += 2)
    if (machine_->core().pages[{page}].load().state() == PageState::parked) machine_->read(page);
  EXPECT_EQ(machine_->far_fetches(), fetched);
  EXPECT_EQ(stat_page()->counters[Counter::faults_refault] - refaults, parked);
}

// Where all that leaves is worth a frame, memory becomes free all the same.
TEST_F(WorthAFrameTest, AreNotKeptWhenNothingElseLeaves) {
  Chosen::answer = [](hl_page) { return true; };
  std::int64_t before = local();
  machine_->evict(24);
  EXPECT_LE(local(), before - 24);
}

}  // namespace
}  // namespace hinterland::testing
