#include "paging/streams.hpp"

#include <gtest/gtest.h>

#include <random>

#include "far/test_support.hpp"

namespace hinterland {
namespace {

constexpr std::uint32_t kPages = 1u << 20;

TEST(StreamsTest, ALoneFaultBringsOnePage) {
  Streams streams(64);
  StreamWindow window = streams.on_fault({1000}, kPages);
  EXPECT_EQ(window.run, (PageRun{{1000}, 1}));
  EXPECT_FALSE(window.confirmed);
}

TEST(StreamsTest, ASequentialStreamDoublesUpToTheMaximum) {
  Streams streams(16);
  std::uint32_t at = 100;
  for (std::uint32_t expected : {1u, 2u, 4u, 8u, 16u, 16u, 16u}) {
    StreamWindow window = streams.on_fault({at}, kPages);
    EXPECT_EQ(window.run, (PageRun{{at}, expected}));
    at = window.run.end().value;
  }
}

TEST(StreamsTest, AFewResidentPagesAreSteppedOver) {
  Streams streams(16);
  streams.on_fault({100}, kPages);
  EXPECT_TRUE(streams.on_fault({103}, kPages).confirmed);   // 101 and 102 were there
  EXPECT_FALSE(streams.on_fault({109}, kPages).confirmed);  // too far beyond 105
}

TEST(StreamsTest, AStreamMayRunDownwards) {
  Streams streams(16);
  streams.on_fault({1000}, kPages);
  std::uint32_t at = 999;
  for (std::uint32_t expected : {2u, 4u, 8u, 16u, 16u}) {
    StreamWindow window = streams.on_fault({at}, kPages);
    EXPECT_EQ(window.run, (PageRun{{at + 1 - expected}, expected}));
    EXPECT_TRUE(window.confirmed);
    at = window.run.first.value - 1;
  }
}

TEST(StreamsTest, ManyStreamsInterleave) {
  Streams streams(32);
  std::array<std::uint32_t, 24> at{};
  for (std::uint32_t i = 0; i < at.size(); ++i) at[i] = i * 10'000;
  std::uint32_t last = 0;
  for (int round = 0; round < 8; ++round)
    for (std::uint32_t& next : at) {
      StreamWindow window = streams.on_fault({next}, kPages);
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
  Streams streams(64);
  std::uint32_t brought = 0;
  for (int i = 0; i < 10'000; ++i) {
    PageIndex page{static_cast<std::uint32_t>(random() % kPages)};
    StreamWindow window = streams.on_fault(page, kPages);
    EXPECT_LE(window.run.first, page);
    EXPECT_LT(page, window.run.end());
    brought += window.run.count;
  }
  EXPECT_LT(brought, 10'200u);  // a random fault next to one of the last 32 happens once in ten thousand
}

TEST(StreamsTest, RunsStayInsideTheWindow) {
  Streams up(64), down(64);
  for (std::uint32_t at = kPages - 7; at < kPages;) at = up.on_fault({at}, kPages).run.end().value;
  EXPECT_EQ(up.on_fault({kPages - 1}, kPages).run.end().value, kPages);
  down.on_fault({6}, kPages);
  EXPECT_EQ(down.on_fault({5}, kPages).run, (PageRun{{4}, 2}));
  EXPECT_EQ(down.on_fault({3}, kPages).run, (PageRun{{0}, 4}));
  EXPECT_EQ(down.on_fault({0}, kPages).run.first.value, 0u);
}

TEST(StreamsTest, ReadAheadCanBeOff) {
  Streams streams(0);
  for (std::uint32_t at = 0; at < 10; ++at) EXPECT_EQ(streams.on_fault({at}, kPages).run.count, 1u);
}

}  // namespace
}  // namespace hinterland
