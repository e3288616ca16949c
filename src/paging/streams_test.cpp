#include "paging/streams.hpp"

#include <gtest/gtest.h>

#include <random>

#include "far/test_support.hpp"

namespace hinterland {
namespace {

constexpr std::uint32_t kWindowPages = 1u << 20;

TEST(StreamsTest, ALoneFaultBringsOnePage) {
  Streams streams(64, false);
  StreamWindow window = streams.on_fault({1000}, kWindowPages);
  EXPECT_EQ(window.run, (PageRun{{1000}, 1}));
  EXPECT_FALSE(window.confirmed);
}

TEST(StreamsTest, ASequentialStreamDoublesUpToTheMaximum) {
  Streams streams(16, false);
  std::uint32_t at = 100;
  for (std::uint32_t expected : {1u, 2u, 4u, 8u, 16u, 16u, 16u}) {
    StreamWindow window = streams.on_fault({at}, kWindowPages);
    EXPECT_EQ(window.run, (PageRun{{at}, expected}));
    at = window.run.end().value;
  }
}

TEST(StreamsTest, AFewResidentPagesAreSteppedOver) {
  Streams streams(16, false);
  streams.on_fault({100}, kWindowPages);
  EXPECT_TRUE(streams.on_fault({103}, kWindowPages).confirmed);   // 101 and 102 were there
  EXPECT_FALSE(streams.on_fault({109}, kWindowPages).confirmed);  // too far beyond 105
}

TEST(StreamsTest, AStreamMayRunDownwards) {
  Streams streams(16, false);
  streams.on_fault({1000}, kWindowPages);
  std::uint32_t at = 999;
  for (std::uint32_t expected : {2u, 4u, 8u, 16u, 16u}) {
    StreamWindow window = streams.on_fault({at}, kWindowPages);
    EXPECT_EQ(window.run, (PageRun{{at + 1 - expected}, expected}));
    EXPECT_TRUE(window.confirmed);
    at = window.run.first.value - 1;
  }
}

TEST(StreamsTest, ManyStreamsInterleave) {
  Streams streams(32, false);
  std::array<std::uint32_t, 24> at{};
  for (std::uint32_t i = 0; i < at.size(); ++i) at[i] = i * 10'000;
  std::uint32_t last = 0;
  for (int round = 0; round < 8; ++round)
    for (std::uint32_t& next : at) {
      StreamWindow window = streams.on_fault({next}, kWindowPages);
      EXPECT_EQ(window.confirmed, round > 0);
      next = window.run.end().value;
      last = window.run.count;
    }
  EXPECT_EQ(last, 32u);
}

TEST(StreamsTest, RandomFaultsStayAtOnePage) {
  std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  Streams streams(64, false);
  std::uint32_t brought = 0;
  for (int i = 0; i < 10'000; ++i) {
    PageIndex page{static_cast<std::uint32_t>(random() % kWindowPages)};
    StreamWindow window = streams.on_fault(page, kWindowPages);
    EXPECT_LE(window.run.first, page);
    EXPECT_LT(page, window.run.end());
    brought += window.run.count;
  }
  EXPECT_LT(brought, 10'200u);  // a random fault next to one of the last 32 happens once in ten thousand
}

TEST(StreamsTest, TheNextWindowIsProposedWhileThisOneIsUsedUp) {
  Streams streams(16, true);
  std::uint32_t at = 100;
  for (std::uint32_t expected : {1u, 2u}) at = streams.on_fault({at}, kWindowPages).run.first.value + expected;
  StreamWindow first = streams.on_fault({at}, kWindowPages);
  EXPECT_EQ(first.run, (PageRun{{103}, 4}));
  EXPECT_EQ(first.ahead, (PageRun{{107}, 4}));
  streams.asked_ahead(first.ahead);
  StreamWindow marker = streams.on_fault({107}, kWindowPages);
  EXPECT_EQ(marker.run, (PageRun{{107}, 1}));  // the rest of its window is there
  EXPECT_EQ(marker.ahead, (PageRun{{111}, 8}));
  streams.asked_ahead({marker.ahead.first, 3});  // only so much was free
  EXPECT_EQ(streams.on_fault({111}, kWindowPages).ahead, (PageRun{{114}, 16}));
}

TEST(StreamsTest, AWindowThatNobodyAskedForIsNotCountedOn) {
  Streams streams(16, true);
  for (std::uint32_t at : {100u, 101u, 103u}) streams.on_fault({at}, kWindowPages);  // and 107 is proposed, in vain
  StreamWindow window = streams.on_fault({107}, kWindowPages);
  EXPECT_EQ(window.run, (PageRun{{107}, 8}));
  EXPECT_EQ(window.ahead, (PageRun{{115}, 8}));
}

TEST(StreamsTest, NothingIsProposedBeyondTheWindowOrBeforeAStreamIsSeen) {
  Streams streams(16, true);
  EXPECT_EQ(streams.on_fault({100}, kWindowPages).ahead.count, 0u);
  EXPECT_EQ(streams.on_fault({101}, kWindowPages).ahead.count, 0u);
  EXPECT_EQ(streams.on_fault({103}, 108).ahead, (PageRun{{107}, 1}));
  Streams synchronous(16, false);
  for (std::uint32_t at : {100u, 101u, 103u, 107u})
    EXPECT_EQ(synchronous.on_fault({at}, kWindowPages).ahead.count, 0u);
}

TEST(StreamsTest, RunsStayWithinWhatTheBudgetAllows) {
  Streams streams(64, false);
  std::uint32_t at = 100;
  for (std::uint32_t expected : {1u, 2u, 4u, 6u, 6u, 6u}) {
    StreamWindow window = streams.on_fault({at}, kWindowPages, 6);
    EXPECT_EQ(window.run, (PageRun{{at}, expected}));
    at = window.run.end().value;
  }
}

TEST(StreamsTest, RunsStayInsideTheWindow) {
  Streams up(64, false), down(64, false);
  for (std::uint32_t at = kWindowPages - 7; at < kWindowPages;) at = up.on_fault({at}, kWindowPages).run.end().value;
  EXPECT_EQ(up.on_fault({kWindowPages - 1}, kWindowPages).run.end().value, kWindowPages);
  down.on_fault({6}, kWindowPages);
  EXPECT_EQ(down.on_fault({5}, kWindowPages).run, (PageRun{{4}, 2}));
  EXPECT_EQ(down.on_fault({3}, kWindowPages).run, (PageRun{{0}, 4}));
  EXPECT_EQ(down.on_fault({0}, kWindowPages).run.first.value, 0u);
}

TEST(StreamsTest, ReadAheadCanBeOff) {
  Streams streams(0, false);
  for (std::uint32_t at = 0; at < 10; ++at) EXPECT_EQ(streams.on_fault({at}, kWindowPages).run.count, 1u);
}

}  // namespace
}  // namespace hinterland
