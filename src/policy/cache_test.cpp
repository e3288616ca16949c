// Policies of the literature against libCacheSim, which their authors keep: the same misses, to the page.
#include "policy/cache.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "policy/policies.hpp"
#include "policy/testing/libcachesim_misses.hpp"
#include "policy/testing/page_traces.hpp"

namespace hinterland {
namespace {

std::uint32_t misses_of(const hl_policy_ops* policy, unsigned number) {
  PageTrace trace(number);
  PolicyCache cache(policy, "", trace.capacity(), 64 * 1024);
  EXPECT_TRUE(cache.ready());
  std::uint32_t misses = 0;
  for (std::uint64_t at = 0; at < PageTrace::kLength; ++at) misses += cache.use(trace.next(at)) ? 0 : 1;
  return misses;
}

class ComparedPolicyTest : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ComparedPolicyTest, MissesAsLibCacheSimDoes) {
  const hl_policy_ops* policy = find_policy(kComparedPolicies[GetParam()]);
  ASSERT_NE(policy, nullptr);
  for (unsigned trace = 0; trace < kLibCacheSimMisses.size(); ++trace)
    EXPECT_EQ(misses_of(policy, trace), kLibCacheSimMisses[trace][GetParam()]) << "trace " << trace;
}

INSTANTIATE_TEST_SUITE_P(All, ComparedPolicyTest, ::testing::Range(std::size_t{0}, kComparedPolicies.size()),
                         [](const auto& policy) {
                           std::string name = kComparedPolicies[policy.param];
                           std::erase(name, '-');
                           return name;
                         });

// Every policy, whatever it is made for: no page twice, none that is not there (PolicyCache checks), and never more
// misses than uses of pages that do not fit.
class CachePolicyTest : public ::testing::TestWithParam<const hl_policy_ops*> {};

TEST_P(CachePolicyTest, WhatFitsIsMissedOnce) {
  PolicyCache cache(GetParam(), "", 100, 1024);
  std::uint32_t misses = 0;
  for (int round = 0; round < 10; ++round)
    for (std::uint64_t page = 0; page < 100; ++page) misses += cache.use(page * 7) ? 0 : 1;
  EXPECT_EQ(misses, 100u);
}

TEST_P(CachePolicyTest, OnePageOfRoomIsEnough) {
  PolicyCache cache(GetParam(), "", 1, 1024);
  for (std::uint64_t page = 0; page < 1000; ++page) {
    EXPECT_FALSE(cache.use(page % 500));
    EXPECT_TRUE(cache.use(page % 500));
  }
}

INSTANTIATE_TEST_SUITE_P(All, CachePolicyTest, ::testing::ValuesIn(policies().begin(), policies().end()),
                         [](const auto& policy) {
                           std::string name = policy.param->name;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace hinterland
