#include "paging/page/frames.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "kernel/fake_kernel.hpp"

namespace hinterland {
namespace {

using Decision = FrameRing::Decision;

// Discards whatever is dropped and passes the rest: as the evictor decides.
Decision decide(std::uint32_t, Frame& frame) {
  return frame.state.load() == FrameState::dropped ? Decision::discard : Decision::pass;
}

// Counts what is given back; maps nothing. Thread-safe.
class CountingKernel : public FakeKernel {
 public:
  CountingKernel() : FakeKernel(all_features()) {}
  int discard(std::span<const iovec> ranges) override {
    for (const iovec& range : ranges) {
      pages += range.iov_len / kPageSize;
      ++calls;
    }
    return 0;
  }
  std::atomic<std::size_t> pages{0}, calls{0};
};

class FramesTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(ring.create(8).has_value()); }
  void set(std::uint32_t first, std::uint32_t count, FrameState state) {
    for (std::uint32_t i = first; i < first + count; ++i) ring[i].state = state;
  }
  CountingKernel kernel;
  FrameRing ring;
};

TEST_F(FramesTest, TakesInRingOrderUntilFull) {
  FrameRun first = ring.take(3), second = ring.take(10);
  EXPECT_EQ(first.first, 0u);
  EXPECT_EQ(first.count, 3u);
  EXPECT_EQ(second.first, 3u);
  EXPECT_EQ(second.count, 5u);
  EXPECT_EQ(ring[7].state.load(), FrameState::leaving);
  EXPECT_EQ(ring.take(1).count, 0u);
  EXPECT_EQ(ring.used(), 8u);
  EXPECT_EQ(ring.address_of(5) - ring.address_of(0), 5 * kPageSize);
}

TEST_F(FramesTest, UntakenFramesAreGivenOutNext) {
  FrameRun run = ring.take(4);
  ring.untake(run, 3);
  EXPECT_EQ(ring.used(), 1u);
  EXPECT_EQ(ring[1].state.load(), FrameState::empty);
  EXPECT_EQ(ring.take(2).first, 1u);
}

TEST_F(FramesTest, UntakenFramesInTheMiddleArePassed) {
  FrameRun early = ring.take(4), late = ring.take(2);
  ring.untake(early, 2);
  EXPECT_EQ(ring.used(), 6u);
  set(0, 2, FrameState::dropped);
  set(late.first, 2, FrameState::dropped);
  EXPECT_EQ(ring.expire(kernel, 100, decide), 4u);
  EXPECT_EQ(ring.used(), 0u);
}

TEST_F(FramesTest, ExpiryGivesBackAdjacentFramesInOneRange) {
  ring.take(5);
  set(0, 5, FrameState::dropped);
  EXPECT_EQ(ring.expire(kernel, 4, decide), 4u);
  EXPECT_EQ(kernel.calls, 1u);
  EXPECT_EQ(kernel.pages, 4u);
  EXPECT_EQ(ring.used(), 1u);
  EXPECT_EQ(ring[0].state.load(), FrameState::empty);
  EXPECT_EQ(ring[4].state.load(), FrameState::dropped);
}

TEST_F(FramesTest, WhatIsStillNeededKeepsItsPlaceAndHoldsUpNobody) {
  ring.take(6);
  set(0, 2, FrameState::dropped);
  set(3, 3, FrameState::dropped);  // 2 is leaving
  EXPECT_EQ(ring.expire(kernel, 100, decide), 5u);
  EXPECT_EQ(ring.used(), 4u);  // their places in the ring wait for frame 2
  EXPECT_EQ(ring.expire(kernel, 100, decide), 0u);
  set(2, 1, FrameState::dropped);
  EXPECT_EQ(ring.expire(kernel, 100, decide), 1u);
  EXPECT_EQ(ring.used(), 0u);
}

TEST_F(FramesTest, OnlyTheOldestPlacesExpire) {
  ring.take(6);
  set(0, 6, FrameState::dropped);
  EXPECT_EQ(ring.expire(kernel, 100, decide, 2), 2u);
  EXPECT_EQ(ring.used(), 4u);
  set(2, 2, FrameState::parked);
  EXPECT_EQ(ring.expire(kernel, 100, decide, 2), 0u);  // of those two nothing expires, and others are not asked
  EXPECT_EQ(ring[4].state.load(), FrameState::dropped);
}

TEST_F(FramesTest, GivesBackWhatIsDroppedOfSomeFramesAtOnce) {
  ring.take(6);
  set(0, 6, FrameState::parked);
  for (std::uint32_t frame : {0u, 1u, 4u}) ring.drop(ring[frame]);
  std::vector<std::uint32_t> some = {4, 3, 0, 1};
  EXPECT_EQ(ring.give_back_dropped(kernel, some), 3u);
  EXPECT_EQ(kernel.pages, 3u);
  EXPECT_EQ(kernel.calls, 2u);  // ranges, of one call
  EXPECT_EQ(ring[3].state.load(), FrameState::parked);
  EXPECT_EQ(ring.give_back_dropped(kernel, some), 0u);
  EXPECT_EQ(ring.used(), 4u);
}

TEST(Frames, KnowsWhenManyAreDropped) {
  CountingKernel kernel;
  FrameRing ring;
  ASSERT_TRUE(ring.create(1024).has_value());
  ring.take(1024);
  for (std::uint32_t frame = 0; frame < 64; ++frame) {
    EXPECT_FALSE(ring.many_dropped()) << frame;
    ring.drop(ring[frame]);
  }
  EXPECT_TRUE(ring.many_dropped());
  EXPECT_EQ(ring.expire(kernel, 32, decide), 32u);
  EXPECT_FALSE(ring.many_dropped());
}

TEST_F(FramesTest, RunsDoNotCrossTheEndOfTheRing) {
  ring.take(6);
  set(0, 6, FrameState::dropped);
  ring.expire(kernel, 100, decide);
  FrameRun end = ring.take(5), beginning = ring.take(5);
  EXPECT_EQ(end.first, 6u);
  EXPECT_EQ(end.count, 2u);
  EXPECT_EQ(beginning.first, 0u);
  EXPECT_EQ(beginning.count, 5u);
  set(6, 2, FrameState::dropped);
  set(0, 5, FrameState::dropped);
  EXPECT_EQ(ring.expire(kernel, 100, decide), 7u);
  EXPECT_EQ(kernel.calls, 3u);  // two ranges this time
}

TEST_F(FramesTest, AbandonedFramesAreAllEmpty) {
  ring.take(5);
  ring.abandon_all();
  EXPECT_EQ(ring.used(), 0u);
  EXPECT_EQ(ring[3].state.load(), FrameState::empty);
  EXPECT_EQ(ring.take(2).first, 5u);
}

// Two evictors: nobody ever gets a frame that somebody else holds, and the ring never holds more than it has.
TEST(FramesThreadsTest, TakingUntakingAndExpiringFromTwoThreads) {
  CountingKernel kernel;
  FrameRing ring;
  ASSERT_TRUE(ring.create(16).has_value());
  std::array<std::atomic<int>, 16> holders{};
  std::atomic<int> wrong{0};
  auto evictor = [&](std::uint32_t salt) {
    for (std::uint32_t i = 0; i < 200'000; ++i) {
      FrameRun run = ring.take(1 + (i + salt) % 5);
      for (std::uint32_t j = 0; j < run.count; ++j) wrong += holders[run.first + j].fetch_add(1) != 0;
      std::uint32_t back = run.count == 0 ? 0 : (i * 7 + salt) % (run.count + 1);
      for (std::uint32_t j = 0; j < run.count; ++j) holders[run.first + j].fetch_sub(1);
      for (std::uint32_t j = 0; j < run.count - back; ++j) ring[run.first + j].state = FrameState::dropped;
      if (back > 0) ring.untake(run, back);
      wrong += ring.used() > 16;
      ring.expire(kernel, 100, decide);
    }
  };
  std::thread first(evictor, 0), second(evictor, 3);
  first.join();
  second.join();
  EXPECT_EQ(wrong, 0);
  ring.expire(kernel, 100, decide);
  EXPECT_EQ(ring.used(), 0u);
}

}  // namespace
}  // namespace hinterland
