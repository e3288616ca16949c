// What faults and pages that come with them take, out of the latencies of a trace.
#include "trace/latencies.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hinterland::trace {
namespace {

void add(std::vector<StackSample>& samples, FaultKind kind, int count, std::uint64_t latency_ns) {
  StackSample sample;
  sample.fault.kind = kind;
  sample.latency_ns = latency_ns;
  sample.weight = 2;
  for (int i = 0; i < count; ++i) samples.push_back(sample);
}

std::vector<StackSample> of_each_kind() {
  std::vector<StackSample> samples;
  add(samples, FaultKind::first_touch, 10, 30'000);
  add(samples, FaultKind::read, 10, 3000);
  add(samples, FaultKind::read, 30, 60'000);
  add(samples, FaultKind::refault, 10, 5000);
  add(samples, FaultKind::write_protect, 10, 4000);
  return samples;
}

// 20 first touches, 80 fetches, 20 refaults and 20 protection faults, as sampled above.
ReplayResult as_sampled(std::uint64_t fetched_ahead, std::uint64_t zeros_ahead) {
  ReplayResult result;
  result.first_touch = result.refaults = result.protection = 20;
  result.fetches = 80;
  result.ahead = fetched_ahead + zeros_ahead;
  result.zeros_ahead = zeros_ahead;
  return result;
}
constexpr double kSampledNs = 20 * 30'000.0 + 20 * 3000.0 + 60 * 60'000.0 + 20 * 5000.0 + 20 * 4000.0;
// Of each fault besides, where a handler's cost is not known.
FaultWay by_handler(std::uint64_t cost_ns) { return fault_way({.handler_cost_ns = cost_ns}); }
const FaultWay kUnknown = by_handler(0);
constexpr double kBesideNs = 1200, kBesideAllNs = 140 * kBesideNs;

TEST(FaultCosts, ATraceWithoutReadAheadHasWhatFaultsTakeByThemselves) {
  FaultCosts found = fault_costs(of_each_kind(), kUnknown, {});
  EXPECT_TRUE(found.known);
  EXPECT_NEAR(found.first_touch, 30'000 + kBesideNs, 1);
  EXPECT_NEAR(found.fetch, 45'750 + kBesideNs, 1);
  EXPECT_NEAR(found.refault, 5000 + kBesideNs, 1);
  EXPECT_NEAR(found.protection, 4000 + kBesideNs, 1);
  EXPECT_NEAR(waiting_ns(as_sampled(0, 0), found), kSampledNs + kBesideAllNs, 1);
  EXPECT_NEAR(waiting_ns(as_sampled(100, 10), found), kSampledNs + kBesideAllNs + 100 * 1100 + 10 * 2500, 1);
}

// What came with the faults when the trace was recorded is in their latencies, and is not charged a second time.
TEST(FaultCosts, WhatWasRecordedIsForetoldAsItWas) {
  for (double fetched : {0.0, 1.0, 10.0, 30.0, 63.0}) {
    for (double zeros : {0.0, 3.0, 63.0}) {
      FaultCosts found = fault_costs(of_each_kind(), kUnknown, {.fetched = fetched, .zeros = zeros});
      auto pages = [](double each, std::uint64_t faults) { return static_cast<std::uint64_t>(each) * faults; };
      EXPECT_NEAR(waiting_ns(as_sampled(pages(fetched, 80), pages(zeros, 20)), found), kSampledNs + kBesideAllNs, 1)
          << fetched << " pages with a fetch, " << zeros << " with a first touch";
      EXPECT_GE(found.fetch, 3000 + kBesideNs) << "no fetch takes less than the quickest";
      EXPECT_GE(found.first_touch, 30'000 + kBesideNs);
    }
  }
}

TEST(FaultCosts, AKindWithoutSamplesTakesWhatAFetchDoes) {
  std::vector<StackSample> samples;
  add(samples, FaultKind::read, 10, 6000);
  FaultCosts found = fault_costs(samples, kUnknown, {});
  EXPECT_NEAR(found.refault, 6000 + kBesideNs, 1);
  EXPECT_NEAR(found.first_touch, 6000 + kBesideNs, 1);
}

// What a machine's handlers cost is in each fault, but for the wake-up, which the latencies have.
TEST(FaultCosts, EachFaultHasWhatTheHandlerDoesNotSee) {
  FaultCosts found = fault_costs(of_each_kind(), by_handler(6000), {});
  EXPECT_NEAR(found.refault, 5000 + 6000 - 1000, 1);
  EXPECT_NEAR(waiting_ns(as_sampled(0, 0), found), kSampledNs + 140 * 5000.0, 1);
  EXPECT_EQ(found.fetched_ahead, fault_costs(of_each_kind(), kUnknown, {}).fetched_ahead);
}

// A thread that serves its own fault wakes nobody: the signal's cost is all in no latency.
TEST(FaultCosts, BySignalTheLatencyHasNoWakeUp) {
  const FaultWay signal = fault_way({.handler_cost_ns = 2500, .faults_by_signal = 1});
  FaultCosts found = fault_costs(of_each_kind(), signal, {});
  EXPECT_NEAR(found.refault, 5000 + 2500, 1);
  EXPECT_NEAR(waiting_ns(as_sampled(0, 0), found), kSampledNs + 140 * 2500.0, 1);
  EXPECT_NEAR(fault_way({.faults_by_signal = 1}).besides_latency(), 1200, 1) << "where it was not measured";
}

TEST(FaultCosts, WithoutLatenciesNothingIsKnown) {
  std::vector<StackSample> samples;
  add(samples, FaultKind::read, 10, 0);
  add(samples, FaultKind::refault, 10, 5000);
  EXPECT_FALSE(fault_costs(samples, by_handler(6000), {.fetched = 3}).known);
  EXPECT_FALSE(fault_costs({}, kUnknown, {}).known);
}

}  // namespace
}  // namespace hinterland::trace
