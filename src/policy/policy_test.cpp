// Every policy that comes with Hinterland, through the same contract that a plug-in has.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "far/test_support.hpp"
#include "paging/page/policy_host.hpp"
#include "paging/testing/victims.hpp"
#include "policy/policies.hpp"

namespace hinterland {
namespace {

constexpr std::uint32_t kResidentPages = 4096;

// A table whose pages are all in use, the last groups first, so that dense numbers differ from places in the window.
PageTable& table() {
  static PageTable* made = [] {
    auto* pages = new PageTable;
    if (!pages->create(kResidentPages)) std::abort();
    for (std::uint32_t page = kResidentPages; page-- > 0;) pages->note_used({page});
    return pages;
  }();
  return *made;
}

class PolicyTest : public ::testing::TestWithParam<const hl_policy_ops*> {
 protected:
  void SetUp() override { ASSERT_TRUE(host.create(GetParam(), table()).has_value()); }
  PolicyHost host;
};

TEST_P(PolicyTest, HasAVersionANameAndHelp) {
  EXPECT_EQ(GetParam()->abi_version, HL_POLICY_ABI_VERSION);
  EXPECT_EQ(find_policy(GetParam()->name), GetParam());
  EXPECT_GT(std::strlen(GetParam()->help), 0u);
}

// The learner tries others now and then (learner_test.cpp).
using PolicyOrderTest = PolicyTest;
TEST_P(PolicyOrderTest, WithoutReusePagesLeaveInTheOrderTheyCame) {
  host.arrived({100}, 5, HL_ARRIVAL_FIRST_TOUCH);
  host.arrived({7}, 1, HL_ARRIVAL_FAULT);
  host.arrived({0}, 2, HL_ARRIVAL_READ_AHEAD);
  EXPECT_EQ(host.size(), 8u);
  EXPECT_EQ(testing::victims_of(host, 6), (std::vector<hl_page>{100, 101, 102, 103, 104, 7}));
  EXPECT_EQ(host.size(), 2u);
  EXPECT_EQ(testing::victims_of(host, 10), (std::vector<hl_page>{0, 1}));
  EXPECT_TRUE(testing::victims_of(host, 10).empty());
}

TEST_P(PolicyTest, DepartedPagesAreNotChosen) {
  host.arrived({10}, 10, HL_ARRIVAL_FIRST_TOUCH);
  host.departed({12}, 3);
  host.departed({3000}, 5);  // not there: nothing to do
  host.departed({12}, 1);
  EXPECT_EQ(host.size(), 7u);
  std::vector<hl_page> victims = testing::victims_of(host, 100);
  std::ranges::sort(victims);
  EXPECT_EQ(victims, (std::vector<hl_page>{10, 11, 15, 16, 17, 18, 19}));
}

TEST_P(PolicyTest, APageIsListedOnce) {
  host.arrived({5}, 1, HL_ARRIVAL_FAULT);
  host.arrived({5}, 1, HL_ARRIVAL_FAULT);
  host.arrived({kResidentPages - 1}, 1, HL_ARRIVAL_RETURNED);
  EXPECT_EQ(host.size(), 2u);
  EXPECT_EQ(testing::victims_of(host, 10).size(), 2u);
}

TEST_P(PolicyTest, RandomCallsAgreeWithASet) {
  std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::set<hl_page> resident;
  for (int step = 0; step < 50'000; ++step) {
    hl_page first = static_cast<hl_page>(random() % (kResidentPages - 8));
    std::uint32_t count = 1 + static_cast<std::uint32_t>(random() % 8);
    switch (random() % 5) {
      case 0:
        host.departed({first}, count);
        for (hl_page page = first; page < first + count; ++page) resident.erase(page);
        break;
      case 1:
        for (hl_page victim : testing::victims_of(host, count)) ASSERT_EQ(resident.erase(victim), 1u) << victim;
        break;
      default:
        host.arrived({first}, count, static_cast<hl_arrival>(random() % 6));
        for (hl_page page = first; page < first + count; ++page) resident.insert(page);
    }
    ASSERT_EQ(host.size(), resident.size());
  }
  EXPECT_EQ(testing::victims_of(host, kResidentPages).size(), resident.size());
}

std::string name_of(const ::testing::TestParamInfo<const hl_policy_ops*>& policy) {
  std::string name = policy.param->name;
  std::erase(name, '-');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, PolicyTest, ::testing::ValuesIn(policies().begin(), policies().end()), name_of);
INSTANTIATE_TEST_SUITE_P(InOrder, PolicyOrderTest,
                         ::testing::Values(&kFifoPolicy, &kLruPolicy, &kPriorityPolicy, &kSecondChancePolicy),
                         name_of);

TEST(SecondChanceTest, ARefaultedPageOutlivesOthers) {
  PolicyHost host;
  ASSERT_TRUE(host.create(&kSecondChancePolicy, table()).has_value());
  host.arrived({1}, 1, HL_ARRIVAL_REFAULT);
  host.arrived({100}, 20, HL_ARRIVAL_FIRST_TOUCH);
  std::vector<hl_page> victims = testing::victims_of(host, 20);
  EXPECT_EQ(std::count(victims.begin(), victims.end(), 1u), 0);
  EXPECT_EQ(testing::victims_of(host, 1), std::vector<hl_page>{1});
}

TEST(SecondChanceTest, ProvenPagesFallBackWhenThereAreTooMany) {
  PolicyHost host;
  ASSERT_TRUE(host.create(&kSecondChancePolicy, table()).has_value());
  host.arrived({0}, 1000, HL_ARRIVAL_REFAULT);
  host.arrived({2000}, 10, HL_ARRIVAL_FAULT);
  std::vector<hl_page> victims = testing::victims_of(host, 300);
  // The oldest proven pages leave before the unproven newcomers.
  EXPECT_EQ(std::count_if(victims.begin(), victims.end(), [](hl_page page) { return page >= 2000; }), 0);
  EXPECT_EQ(victims.front(), 0u);
}

// Policies that keep pages in use apart: who comes back before half as many others have left as stay.
class DeparturesTest : public ::testing::TestWithParam<const hl_policy_ops*> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(host.create(GetParam(), table()).has_value());
    host.arrived({0}, 40, HL_ARRIVAL_FAULT);
    left = testing::victims_of(host, 20);
    ASSERT_EQ(left.front(), 0u);
  }
  // Page 0 comes back; whether it outlives those that were there before, and one of those that came after it.
  bool outlives(hl_arrival why) {
    host.arrived({0}, 1, why);
    host.arrived({1000}, 20, HL_ARRIVAL_FIRST_TOUCH);
    std::vector<hl_page> victims = testing::victims_of(host, host.size() - 20);
    return std::ranges::find(victims, 0u) == victims.end();
  }
  PolicyHost host;
  std::vector<hl_page> left;
};

TEST_P(DeparturesTest, APageThatIsFetchedAgainSoonStays) {
  host.arrived({100}, 22, HL_ARRIVAL_FAULT);  // 42 are there, 19 left after page 0
  EXPECT_TRUE(outlives(HL_ARRIVAL_FAULT));
}

TEST_P(DeparturesTest, OneThatAHintBringsBackIsJudgedByHints) {
  host.arrived({100}, 22, HL_ARRIVAL_FAULT);
  EXPECT_FALSE(outlives(HL_ARRIVAL_HINT));
}

TEST_P(DeparturesTest, OneThatStayedAwayForLongDoesNot) {
  host.arrived({100}, 18, HL_ARRIVAL_FAULT);  // 38: half of them is 19
  EXPECT_FALSE(outlives(HL_ARRIVAL_FAULT));
}

TEST_P(DeparturesTest, NorOneThatNobodyAskedFor) {
  host.arrived({100}, 22, HL_ARRIVAL_FAULT);
  EXPECT_FALSE(outlives(HL_ARRIVAL_READ_AHEAD));
}

TEST_P(DeparturesTest, NorOneThatIsFresh) {
  host.arrived({100}, 22, HL_ARRIVAL_FAULT);
  EXPECT_FALSE(outlives(HL_ARRIVAL_FIRST_TOUCH));  // freed meanwhile, and taken again
}

INSTANTIATE_TEST_SUITE_P(ByUse, DeparturesTest, ::testing::Values(&kSecondChancePolicy, &kPriorityPolicy),
                         [](const auto& policy) { return *policy.param->name == 'p' ? "Priority" : "SecondChance"; });

TEST(PriorityTest, HigherPrioritiesLeaveFirst) {
  PolicyHost host;
  ASSERT_TRUE(host.create(&kPriorityPolicy, table()).has_value());
  host.arrived({0}, 100, HL_ARRIVAL_FIRST_TOUCH);
  host.arrived({200}, 50, HL_ARRIVAL_HINT, 3);
  host.arrived({300}, 50, HL_ARRIVAL_HINT, 15);
  std::vector<hl_page> victims = testing::victims_of(host, 92);
  // Of each priority the last are newcomers, which are about to be used: they stay while there are others.
  for (std::uint32_t i = 0; i < 44; ++i) EXPECT_EQ(victims[i], 300 + i);
  for (std::uint32_t i = 44; i < 90; ++i) EXPECT_EQ(victims[i], 200 + i - 44) << i;
  EXPECT_EQ(testing::victims_of(host, 200).size(), 108u);
}

TEST(PriorityTest, APageThatComesBackKeepsItsPriority) {
  PolicyHost host;
  ASSERT_TRUE(host.create(&kPriorityPolicy, table()).has_value());
  host.arrived({7}, 1, HL_ARRIVAL_HINT, 9);
  host.arrived({8}, 1, HL_ARRIVAL_HINT, 9);
  EXPECT_EQ(testing::victims_of(host, 2), (std::vector<hl_page>{7, 8}));
  host.arrived({100}, 20, HL_ARRIVAL_FAULT);
  host.arrived({8}, 1, HL_ARRIVAL_RETURNED);
  host.arrived({7}, 1, HL_ARRIVAL_REFAULT);
  EXPECT_EQ(testing::victims_of(host, 2), (std::vector<hl_page>{8, 7}));
  host.arrived({7}, 1, HL_ARRIVAL_FAULT);  // another time, without a hint
  EXPECT_EQ(testing::victims_of(host, 1), std::vector<hl_page>{100});
}

// What was never used has no number: a policy is not told that it departed.
TEST(PolicyHostTest, PagesNeverUsedDoNotDepart) {
  PageTable pages;
  ASSERT_TRUE(pages.create(kResidentPages).has_value());
  pages.note_used({40});
  PolicyHost host;
  ASSERT_TRUE(host.create(&kFifoPolicy, pages).has_value());
  host.arrived({40}, 2, HL_ARRIVAL_FAULT);
  host.departed({0}, 40);
  host.departed({41}, 100);
  EXPECT_EQ(testing::victims_of(host, 10), std::vector<hl_page>{40});
}

TEST(PolicyHostTest, RefusesAnotherVersionOfTheInterface) {
  hl_policy_ops other = kFifoPolicy;
  other.abi_version = HL_POLICY_ABI_VERSION + 1;
  PolicyHost host;
  Status status = host.create(&other, table());
  ASSERT_FALSE(status.has_value());
  EXPECT_NE(std::strstr(status.error().what(), "fifo"), nullptr);
  EXPECT_NE(std::strlen(status.error().next_step()), 0u);
}

TEST(PolicyHostTest, SaysWhenAPolicyCannotStart) {
  hl_policy_ops hungry = kFifoPolicy;
  hungry.create = [](const hl_policy_env*) -> void* { return nullptr; };
  PolicyHost host;
  Status status = host.create(&hungry, table());
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code(), ENOMEM);
}

TEST(PoliciesTest, AnUnknownNameIsNone) { EXPECT_EQ(find_policy("most-recently-used"), nullptr); }

}  // namespace
}  // namespace hinterland
