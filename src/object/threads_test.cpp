// Far objects of many threads at a time, with little local memory, against what they must hold: the whole protocol of
// words.hpp under load. Seeds are printed; HINTERLAND_TEST_SEED gives one back.
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "object/test_support.hpp"
#include "object/testing/objects_model.hpp"

namespace hinterland::object::testing {
namespace {

using hl::far::make;
using hl::far::ptr;
using hl::far::scope;

void run_models(const std::string& url, unsigned evacuators, int steps) {
  SCOPED_TRACE(url);
  HeapForTest heap(url, HeapOptions::kLocalBytesMin, evacuators);
  run_objects_model(heap, steps);
}

TEST(HeapThreads, Model) { run_models("mem:", 1, 80'000); }
TEST(HeapThreads, ModelWithTwoEvacuators) { run_models("mem:", 2, 80'000); }
TEST(HeapThreads, ModelOverADeviceThatTakesItsTime) { run_models("sim:latency=10us,inner=mem:", 2, 40'000); }
TEST(HeapThreads, ModelOverCompressedMemory) { run_models("zmem:", 1, 40'000); }
TEST(HeapThreads, ModelOverADeviceThatFails) {
  hl::far::throw_when_lost(true);
  run_models("sim:fail_reads=0.01,corrupt=0.01,fail_writes=0.01,seed=9,inner=mem:", 2, 100'000);
  hl::far::throw_when_lost(false);
}

struct Counters {
  std::uint64_t values[8];
};

// Many threads use the same pointers: none of what they write gets lost while objects come and go.
void count_together(const std::string& url, unsigned evacuators) {
  const std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE(url + ", HINTERLAND_TEST_SEED=" + std::to_string(seed));
  HeapForTest heap(url, HeapOptions::kLocalBytesMin, evacuators);
  constexpr std::size_t kCounters = 200'000;
  std::vector<ptr<Counters>> counters;
  for (std::size_t i = 0; i < kCounters; ++i) counters.push_back(make<Counters>());
  const std::size_t steps = 100'000 / kStepsShare;
  constexpr unsigned kThreads = 4;
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(seed + thread);
      for (std::size_t step = 0; step < steps; ++step) {
        // Half of it in a corner, where threads meet.
        const std::size_t at = random() % 2 == 0 ? random() % 512 : random() % kCounters;
        scope held;
        std::atomic_ref(counters[at].deref_mut(held)->values[step % 8]).fetch_add(1, std::memory_order_relaxed);
      }
    });
  for (auto& thread : threads) thread.join();
  std::uint64_t sum = 0;
  for (auto& each : counters)
    for (std::uint64_t value : each.read().values) sum += value;
  EXPECT_EQ(sum, steps * kThreads);
  EXPECT_GT(heap->figures().brought.load(), steps / 2);
}

TEST(HeapThreads, NoWriteIsLost) { count_together("mem:", 1); }
TEST(HeapThreads, NoWriteIsLostWithTwoEvacuators) { count_together("mem:", 2); }
TEST(HeapThreads, NoWriteIsLostWhereDevicesTakeTheirTime) { count_together("sim:latency=3us,inner=mem:", 1); }

TEST(HeapThreads, ThreadsComeAndGo) {
  HeapForTest heap;
  std::vector<ptr<Known<64>>> items;
  for (std::uint64_t i = 0; i < 300'000; ++i) items.push_back(make_known<64>(i));
  std::atomic<std::size_t> wrong{0};
  for (int round = 0; round < 200 / kStepsShare; ++round) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        for (std::size_t i = static_cast<std::size_t>(round * 4 + thread); i < items.size(); i += 1000) {
          scope held;
          wrong += !items[i].deref(held)->holds(i);
        }
      });
    for (auto& thread : threads) thread.join();
  }
  EXPECT_EQ(wrong.load(), 0u);
}

}  // namespace
}  // namespace hinterland::object::testing
