// What a traced process keeps of its allocations: an unbiased sample, in a table that never grows.
#include "trace/allocation_log.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "trace/ring.hpp"

namespace hinterland::trace {
namespace {

using namespace allocation_log;

constexpr std::uintptr_t kHeap = std::uintptr_t{1} << 45;

// What a ring that is made now is told.
std::map<std::uintptr_t, AllocationEvent> living(std::uint64_t* lost = nullptr) {
  auto ring = std::make_unique<RingFile>();
  tell_all(*ring);
  QueueReader<AllocationEvent, RingFile::kAllocationRoom> reader(ring->allocations);
  std::map<std::uintptr_t, AllocationEvent> all;
  reader.take([&](const AllocationEvent& event) { EXPECT_TRUE(all.emplace(event.address, event).second); });
  if (lost != nullptr) *lost = reader.lost();
  return all;
}

TEST(AllocationLog, SmallOnesAreSampledByTheirSize) {
  for (std::size_t bytes : {std::size_t{64}, std::size_t{1000}, std::size_t{100'000}}) {
    double p = static_cast<double>(bytes) / static_cast<double>(kAllocationInterval);
    auto count = static_cast<std::uint64_t>(400 / p);
    std::uint64_t taken = 0;
    for (std::uint64_t i = 0; i < count; ++i) taken += sampled(bytes) != 0;
    EXPECT_NEAR(static_cast<double>(taken), 400, 6 * std::sqrt(400 * (1 - p)) + 1) << bytes;
  }
  EXPECT_EQ(sampled(0), 0u);
  for (int i = 0; i < 1000; ++i) EXPECT_NE(sampled(kAllocationInterval), 0u);
}

TEST(AllocationLog, KeepsWhatLives) {
  ASSERT_TRUE(begin());
  EXPECT_TRUE(made(kHeap, 100, 112, 5000));
  EXPECT_TRUE(made(kHeap + 4096, kAllocationInterval, kAllocationInterval + 100, 6000));
  EXPECT_TRUE(mapped(kHeap + 65536, 8192, 7000));
  EXPECT_TRUE(made(kHeap + 128, 100, 112, 8000));
  EXPECT_EQ(taken_out(kHeap + 128), 8000u);
  EXPECT_EQ(taken_out(kHeap + 128), 0u);
  EXPECT_EQ(taken_out(kHeap + 64), 0u);
  auto all = living();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[kHeap].bytes, 112u);
  EXPECT_EQ(all[kHeap].stands_for, kAllocationInterval * 112 / 100);
  EXPECT_EQ(all[kHeap].time_ns, 5000u);
  EXPECT_EQ(all[kHeap + 4096].stands_for, all[kHeap + 4096].bytes);
  EXPECT_EQ(all[kHeap + 65536].kind, AllocationKind::mapping);
  unmapped(kHeap + 65536, 8192, 9000);
  EXPECT_EQ(living().size(), 2u);
  ASSERT_TRUE(begin());  // another recording: nothing is known of what was before
  EXPECT_TRUE(living().empty());
}

TEST(AllocationLog, AFullTableCountsWhatItLeavesOut) {
  ASSERT_TRUE(begin());
  constexpr std::uint64_t kMany = 60'000;
  for (std::uint64_t i = 0; i < kMany; ++i) EXPECT_TRUE(made(kHeap + i * 4096, 64, 64, i + 1));
  std::uint64_t lost = 0;
  auto all = living(&lost);
  EXPECT_EQ(all.size() + lost, kMany);
  EXPECT_GT(all.size(), RingFile::kAllocationRoom * 9 / 10);
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < kMany; ++i) found += taken_out(kHeap + i * 4096) == i + 1;
  EXPECT_EQ(found, all.size());
  EXPECT_TRUE(living().empty());
}

// Each thread takes out what it put in, whatever the others do in the same buckets.
TEST(AllocationLog, ThreadsDoNotDisturbEachOther) {
  ASSERT_TRUE(begin());
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> wrong{0};
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 1; i <= 3000; ++i) {
        std::uintptr_t address = kHeap + (t << 24) + i % 200 * 64;
        made(address, 64, 64, t << 32 | i);
        std::uint64_t taken = taken_out(address);
        wrong += taken != (t << 32 | i);
      }
    });
  for (int i = 0; i < 20; ++i) living();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(living().empty());
}

}  // namespace
}  // namespace hinterland::trace
