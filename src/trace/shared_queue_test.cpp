// The queue between a traced process and the recorder: nothing is lost silently, nothing is taken twice, and nothing
// that the other side writes there can harm the reader.
#include "trace/shared_queue.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace hinterland::trace {
namespace {

struct Pair {
  std::uint64_t one, two;
};
constexpr std::uint32_t kRoom = 64;
using Queue = SharedQueue<Pair, kRoom>;
using Reader = QueueReader<Pair, kRoom>;

TEST(SharedQueue, GivesBackInOrderAndCountsWhatHasNoRoom) {
  auto queue = std::make_unique<Queue>();
  Reader reader(*queue);
  for (std::uint64_t i = 0; i < kRoom + 3; ++i) EXPECT_EQ(queue->put({i, ~i}), i < kRoom);
  EXPECT_TRUE(queue->is_full());
  std::uint64_t next = 0;
  reader.take([&](const Pair& pair) {
    EXPECT_EQ(pair.one, next++);
    EXPECT_EQ(pair.two, ~pair.one);
  });
  EXPECT_EQ(next, kRoom);
  EXPECT_EQ(reader.lost(), 3u);
  EXPECT_FALSE(queue->is_full());
  EXPECT_TRUE(queue->put({1, 2}));
}

TEST(SharedQueue, ManyWritersLoseNothingSilently) {
  constexpr std::uint64_t kEach = 20'000, kThreads = 4;
  auto queue = std::make_unique<Queue>();
  Reader reader(*queue);
  std::vector<std::thread> writers;
  std::atomic<std::uint64_t> put{0}, done{0};
  for (std::uint64_t t = 0; t < kThreads; ++t)
    writers.emplace_back([&, t] {
      for (std::uint64_t i = 1; i <= kEach; ++i) put += queue->put({t << 32 | i, ~(t << 32 | i)});
      ++done;
    });
  std::uint64_t taken = 0, last[kThreads] = {};
  auto visit = [&](const Pair& pair) {
    ASSERT_EQ(pair.two, ~pair.one);
    std::uint64_t thread = pair.one >> 32, number = pair.one & UINT32_MAX;
    ASSERT_LT(thread, kThreads);
    ASSERT_GT(number, last[thread]);  // a thread's records stay in their order
    last[thread] = number;
    ++taken;
  };
  while (done != kThreads) reader.take(visit);
  reader.take(visit);
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(taken, put);
  EXPECT_EQ(taken + reader.lost(), kEach * kThreads);
  EXPECT_GE(taken, kRoom);
}

// Where there is always room nothing is lost, however writers and reader come in each other's way.
TEST(SharedQueue, NothingIsLostWhileThereIsRoom) {
  constexpr std::uint64_t kEach = 50'000;
  using Large = SharedQueue<Pair, 262'144>;
  auto queue = std::make_unique<Large>();
  QueueReader<Pair, 262'144> reader(*queue);
  std::vector<std::thread> writers;
  std::atomic<std::uint64_t> done{0};
  for (int t = 0; t < 4; ++t)
    writers.emplace_back([&] {
      for (std::uint64_t i = 0; i < kEach; ++i) queue->put({i, i});
      ++done;
    });
  std::uint64_t taken = 0;
  while (done != 4) reader.take([&](const Pair&) { ++taken; });
  reader.take([&](const Pair&) { ++taken; });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(reader.lost(), 0u);
  EXPECT_EQ(taken, 4 * kEach);
}

// A thread was killed between taking a place and filling it: what is behind waits, and is not lost.
TEST(SharedQueue, SkipsAPlaceThatIsNeverFilled) {
  auto queue = std::make_unique<Queue>();
  Reader reader(*queue);
  queue->begun.fetch_add(1);
  queue->put({7, 8});
  std::vector<std::uint64_t> seen;
  auto visit = [&](const Pair& pair) { seen.push_back(pair.one); };
  reader.take(visit);
  EXPECT_TRUE(seen.empty());
  for (int i = 0; i < 100 && seen.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    reader.take(visit);
  }
  EXPECT_EQ(seen, std::vector<std::uint64_t>{7});
  EXPECT_EQ(reader.lost(), 1u);
}

TEST(SharedQueue, NonsenseFromTheOtherSideIsNotRead) {
  auto queue = std::make_unique<Queue>();
  Reader reader(*queue);
  queue->put({1, 2});
  queue->begun.store(~std::uint64_t{0} / 2);
  reader.take([](const Pair&) { FAIL() << "read what nobody wrote"; });
}

}  // namespace
}  // namespace hinterland::trace
