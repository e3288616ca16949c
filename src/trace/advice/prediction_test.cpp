// What faults cost, out of the latencies of a trace.
#include "trace/advice/prediction.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hinterland::trace {
namespace {

void add(std::vector<StackSample>& samples, FaultKind kind, int count, std::uint64_t latency_ns) {
  StackSample sample;
  sample.fault.kind = kind;
  sample.latency_ns = latency_ns;
  for (int i = 0; i < count; ++i) samples.push_back(sample);
}

TEST(CostsTest, AreThoseOfTheTrace) {
  std::vector<StackSample> samples;
  add(samples, FaultKind::read, 20, 9000);
  add(samples, FaultKind::refault, 20, 5000);
  add(samples, FaultKind::write_protect, 20, 4500);
  Costs costs = costs_of(samples);
  EXPECT_TRUE(costs.measured);
  EXPECT_NEAR(costs.fetch_fault, 10'000, 500);
  EXPECT_NEAR(costs.refault_fault, 6200, 500);
  EXPECT_NEAR(costs.protection_fault, 5700, 500);
  EXPECT_LT(costs.fetch_hint, costs.fetch_fault);
  EXPECT_LT(costs.refault_hint, costs.fetch_hint);
}

// On a busy machine a thread may wait for a CPU in one of the few faults of a kind.
TEST(CostsTest, NothingCostsMoreThanAFetch) {
  std::vector<StackSample> samples;
  add(samples, FaultKind::read, 100, 9000);
  add(samples, FaultKind::refault, 2, 4'000'000);
  add(samples, FaultKind::write_protect, 3, 1'000'000);
  Costs costs = costs_of(samples);
  EXPECT_EQ(costs.refault_fault, costs.fetch_fault);
  EXPECT_EQ(costs.refault_hint, costs.fetch_hint);
  EXPECT_EQ(costs.protection_fault, costs.fetch_fault);
  EXPECT_EQ(costs.protection_hint, costs.fetch_hint);
}

}  // namespace
}  // namespace hinterland::trace
