// What faults cost, out of the latencies of a trace.
#include "advice/prediction.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "policy/policies.hpp"

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
  Costs costs = costs_of(samples, fault_way({.handler_cost_ns = 0}), {});
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
  Costs costs = costs_of(samples, fault_way({.handler_cost_ns = 0}), {});
  EXPECT_EQ(costs.refault_fault, costs.fetch_fault);
  EXPECT_EQ(costs.refault_hint, costs.fetch_hint);
  EXPECT_EQ(costs.protection_fault, costs.fetch_fault);
  EXPECT_EQ(costs.protection_hint, costs.fetch_hint);
}

// Where others want the processors, nine faults of ten wait for one; a hint would wait for none.
TEST(CostsTest, AHintDoesNotWaitForTheScheduler) {
  std::vector<StackSample> samples;
  add(samples, FaultKind::read, 90, 200'000);
  add(samples, FaultKind::read, 10, 9000);
  Costs costs = costs_of(samples, fault_way({.handler_cost_ns = 0}), {});
  EXPECT_NEAR(costs.fetch_hint, 8000, 500);
  EXPECT_GT(costs.fetch_fault, 180'000);
  // Forms of a hint are compared without that.
  EXPECT_EQ(costs.when_idle().fetch_hint, costs.fetch_hint);
  EXPECT_NEAR(costs.when_idle().fetch_fault, costs.fetch_hint + 2200, 1);
  EXPECT_EQ(costs_of(samples, fault_way({.handler_cost_ns = 70'000}), {}).when_idle().fetch_fault,
            costs.when_idle().fetch_fault);
}

// What faults of this machine take more than hints, where it is more than what latencies say.
TEST(CostsTest, AHintSparesWhatAHandlerCosts) {
  std::vector<StackSample> samples;
  add(samples, FaultKind::read, 20, 5000);
  Costs costs = costs_of(samples, fault_way({.handler_cost_ns = 6000}), {});
  EXPECT_NEAR(costs.fetch_fault - costs.fetch_hint, 6000, 1);
  Costs unknown = costs_of(samples, fault_way({.handler_cost_ns = 0}), {});
  EXPECT_EQ(costs.fetch_hint, unknown.fetch_hint);
  EXPECT_LT(unknown.fetch_fault, costs.fetch_fault);
  add(samples, FaultKind::read, 10, 50'000);  // some faults wait for others
  EXPECT_NEAR(costs_of(samples, fault_way({.handler_cost_ns = 6000}), {}).fetch_fault, 20'000 + 5000, 100);
}

// Before local memory is full they cost nothing; of the others each costs what it takes more than natively.
TEST(CostsTest, FirstTouchesCostWhereLocalMemoryIsFull) {
  std::vector<StackSample> samples;
  add(samples, FaultKind::read, 20, 9000);
  add(samples, FaultKind::first_touch, 20, 4000);
  const Costs costs = costs_of(samples, fault_way({.handler_cost_ns = 6000}), {});
  EXPECT_NEAR(costs.first_touch, 4000 + 5000 - 500, 1);
  ReplayResult result;
  result.first_touch = 1000;
  EXPECT_NEAR(waiting_for_first_touches(result, costs, 0), 1000 * costs.first_touch, 1);
  EXPECT_NEAR(waiting_for_first_touches(result, costs, 750 << 12), 250 * costs.first_touch, 1);
  EXPECT_EQ(waiting_for_first_touches(result, costs, 1000 << 12), 0);
  EXPECT_EQ(waiting_of(result, costs), 0) << "no hint spares them";
  result.zeros_ahead = 1000;
  EXPECT_NEAR(waiting_for_first_touches(result, costs, 1000 << 12), 500 * (costs.first_touch + costs.zeros_ahead), 1);
}

// Pages that are read at random, 64 of 1024 local, of which each tenth is then written by a fault of its own: what a
// hint for writing spares of these is less than what it costs to write the other nine out. Where most are written, it
// is more.
double gain_of_a_hint_for_writing(int of_ten_written) {
  const std::string path = std::filesystem::temp_directory_path() / ("prediction_test." + std::to_string(getpid()));
  {
    Result<TraceWriter> writer = TraceWriter::create(path, true);
    EXPECT_TRUE(writer);
    ProcessFacts facts;
    facts.program = "made";
    writer->process(facts);
    std::mt19937_64 random(1);
    std::uint64_t time_ns = 0;
    for (int step = 0; step < 20'000; ++step) {
      const std::uint64_t page = 0x10'0000 + random() % 1024;
      writer->fault({time_ns += 1000, page, 1, FaultKind::read, false});
      if (step % 10 < of_ten_written) writer->fault({time_ns += 100, page, 1, FaultKind::write_protect, true});
    }
    EXPECT_EQ(writer->flush(), 0);
  }
  Result<TraceFile> trace = TraceFile::open(path);
  std::filesystem::remove(path);
  EXPECT_TRUE(trace);
  FaultSites sites;
  sites.sites.resize(1);
  trace->for_each_fault([&](const FaultRecord&) { sites.of_fault.push_back(0); });
  const Costs costs = costs_of({}, fault_way({.handler_cost_ns = 0}), {}).when_idle();
  ReplayOptions options;
  options.local_bytes = 64 << kPageShift;
  options.policy = find_policy("fifo");
  const Predictor predictor(*trace, sites, costs, options);
  ReplayHint for_writing;
  for_writing.write = true;
  const Prediction read = predictor.with({{0, ReplayHint{}}}), written = predictor.with({{0, for_writing}});
  EXPECT_LT(waiting_of(written.result, costs), waiting_of(read.result, costs)) << "fewer faults for protection";
  return waiting_of(read.result, costs) - waiting_of(written.result, costs) -
         written_for_nothing(written.result, read.result, costs);
}

TEST(WrittenForNothingTest, AHintForWritingPaysWhereMostPagesAreWritten) {
  EXPECT_LT(gain_of_a_hint_for_writing(1), 0);
  EXPECT_GT(gain_of_a_hint_for_writing(9), 0);
}

}  // namespace
}  // namespace hinterland::trace
