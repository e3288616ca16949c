#include "paging/in/streams.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

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
  std::uint64_t at = 100;
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
  std::uint64_t at = 999;
  for (std::uint32_t expected : {2u, 4u, 8u, 16u, 16u}) {
    StreamWindow window = streams.on_fault({at}, kWindowPages);
    EXPECT_EQ(window.run, (PageRun{{at + 1 - expected}, expected}));
    EXPECT_TRUE(window.confirmed);
    at = window.run.first.value - 1;
  }
}

TEST(StreamsTest, ManyStreamsInterleave) {
  Streams streams(32, false);
  std::array<std::uint64_t, 24> at{};
  for (std::uint32_t i = 0; i < at.size(); ++i) at[i] = i * 10'000;
  std::uint32_t last = 0;
  for (int round = 0; round < 8; ++round)
    for (std::uint64_t& next : at) {
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
  std::uint64_t at = 100;
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

// Of long windows two are proposed; each has its marker, and whichever the stream comes to asks for what is missing.
TEST(StreamsTest, TwoLongWindowsAreProposed) {
  Streams streams(32, true);
  std::uint64_t at = 100;
  for (std::uint32_t brought : {1u, 2u, 4u, 8u, 16u}) {
    EXPECT_EQ(streams.on_fault({at}, kWindowPages).run.count, brought);  // what is proposed ahead nobody asks for
    at += brought;
  }
  StreamWindow first = streams.on_fault({at}, kWindowPages);
  EXPECT_EQ(first.run, (PageRun{{at}, 32}));
  EXPECT_EQ(first.ahead, (PageRun{{at + 32}, 64}));
  EXPECT_EQ(first.ahead_window, 32u);
  streams.asked_ahead({{at + 32}, 32});
  streams.asked_ahead({{at + 64}, 32});
  StreamWindow marker = streams.on_fault({at + 32}, kWindowPages);
  EXPECT_EQ(marker.run.count, 1u);
  EXPECT_EQ(marker.ahead, (PageRun{{at + 96}, 32}));
  streams.asked_ahead(marker.ahead);
  EXPECT_EQ(streams.on_fault({at + 64}, kWindowPages).ahead, (PageRun{{at + 128}, 32}));
  // That one was not asked for, there was no room; and the marker of the one before was passed by.
  StreamWindow late = streams.on_fault({at + 97}, kWindowPages);
  EXPECT_TRUE(late.confirmed);
  EXPECT_EQ(late.ahead, (PageRun{{at + 128}, 64}));
  // Nothing beyond the window.
  streams.asked_ahead({{at + 128}, 32});
  EXPECT_EQ(streams.on_fault({at + 128}, at + 170).ahead, (PageRun{{at + 160}, 10}));
}

TEST(StreamsTest, AWindowThatNobodyAskedForIsNotCountedOn) {
  Streams streams(16, true);
  for (std::uint64_t at : {100u, 101u, 103u}) streams.on_fault({at}, kWindowPages);  // and 107 is proposed, in vain
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
  for (std::uint64_t at : {100u, 101u, 103u, 107u})
    EXPECT_EQ(synchronous.on_fault({at}, kWindowPages).ahead.count, 0u);
}

TEST(StreamsTest, RunsStayWithinWhatTheBudgetAllows) {
  Streams streams(64, false);
  std::uint64_t at = 100;
  for (std::uint32_t expected : {1u, 2u, 4u, 6u, 6u, 6u}) {
    StreamWindow window = streams.on_fault({at}, kWindowPages, 6);
    EXPECT_EQ(window.run, (PageRun{{at}, expected}));
    at = window.run.end().value;
  }
}

TEST(StreamsTest, RunsStayInsideTheWindow) {
  Streams up(64, false), down(64, false);
  for (std::uint64_t at = kWindowPages - 7; at < kWindowPages;) at = up.on_fault({at}, kWindowPages).run.end().value;
  EXPECT_EQ(up.on_fault({kWindowPages - 1}, kWindowPages).run.end().value, kWindowPages);
  down.on_fault({6}, kWindowPages);
  EXPECT_EQ(down.on_fault({5}, kWindowPages).run, (PageRun{{4}, 2}));
  EXPECT_EQ(down.on_fault({3}, kWindowPages).run, (PageRun{{0}, 4}));
  EXPECT_EQ(down.on_fault({0}, kWindowPages).run.first.value, 0u);
}

// The pages that a program going from `first` in steps finds not there, with what is brought for it.
std::vector<std::uint32_t> faults_in_steps(Streams& streams, std::uint32_t first, std::int32_t stride,
                                           std::uint32_t count) {
  std::vector<std::uint32_t> faults;
  std::set<std::uint64_t> there;
  for (std::uint32_t i = 0; i < count; ++i) {
    auto page = static_cast<std::uint32_t>(first + std::int64_t{stride} * i);
    if (there.contains(page)) continue;
    faults.push_back(page);
    StreamWindow window = streams.on_fault({page}, kWindowPages);
    EXPECT_LE(window.steps, 15u);
    for (std::uint64_t at = window.run.first.value; at < window.run.end().value; ++at) there.insert(at);
    for (std::uint32_t step = 1; step <= window.steps; ++step)
      there.insert(static_cast<std::uint32_t>(page + std::int64_t{window.stride} * step));
  }
  return faults;
}

TEST(StreamsTest, StepsOverPagesAreSeenInBothDirections) {
  for (std::int32_t stride : {4, 8, 100, 1024, -4, -17, -1024}) {
    Streams streams(64, false);
    std::uint32_t first = stride > 0 ? 5 : kWindowPages - 5;
    // Three alone, the fourth brings one more, then 4, 8 and 16 at a time.
    EXPECT_EQ(faults_in_steps(streams, first, stride, 200).size(), 3u + 1 + 1 + 1 + 12) << stride;
  }
}

TEST(StreamsTest, StepsThatAreShortOrVeryLongAreNot) {
  Streams near(64, false), far(64, false);
  EXPECT_LT(faults_in_steps(near, 100, 2, 200).size(), 20u);  // a stream without steps: every page comes
  EXPECT_EQ(faults_in_steps(far, 100, 1025, 200).size(), 200u);
}

TEST(StreamsTest, StreamsInStepsInterleaveWithOthers) {
  Streams streams(64, false);
  std::set<std::uint64_t> there;
  std::uint32_t faults = 0;
  auto touch = [&](std::uint32_t page) {
    if (there.contains(page)) return;
    ++faults;
    StreamWindow window = streams.on_fault({page}, kWindowPages);
    for (std::uint64_t at = window.run.first.value; at < window.run.end().value; ++at) there.insert(at);
    for (std::uint32_t step = 1; step <= window.steps; ++step)
      there.insert(static_cast<std::uint32_t>(page + std::int64_t{window.stride} * step));
  };
  for (std::uint32_t i = 0; i < 256; ++i) {
    touch(1000 + 16 * i);
    touch(300'000 - 40 * i);
    touch(500'000 + i);
  }
  EXPECT_LT(faults, 3 * 256u / 8);
}

TEST(StreamsTest, StepsStayInsideTheWindowAndTheBudget) {
  Streams up(64, false), down(64, false), small(64, false);
  for (std::uint32_t page = 100; page < 900; page += 100) {
    StreamWindow window = up.on_fault({page}, 1000);
    EXPECT_LT(page + window.steps * 100, 1000u);
    EXPECT_LE(down.on_fault({999 - page}, 1000).steps, (999 - page) / 100);
    EXPECT_LE(small.on_fault({page}, 1000, 3).steps, 2u);
    EXPECT_EQ(small.on_fault({5000 + page}, 10'000, 1).steps, 0u);
  }
}

// Records of a few pages, at random: what comes behind them is not used.
TEST(StreamsTest, WindowsGrowLessWhereStreamsEndEarly) {
  std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  Streams streams(64, false);
  auto brought_in_vain = [&](int records) {
    std::uint32_t in_vain = 0, said = 0;
    for (int i = 0; i < records; ++i) {
      auto first = static_cast<std::uint32_t>(random() % (kWindowPages / 64)) * 64, end = first + 9;
      for (std::uint64_t at = first; at < end;) {
        StreamWindow window = streams.on_fault({at}, kWindowPages);
        at = window.run.end().value;
        said += window.unused;
      }
      for (int other = 0; other < 40; ++other)  // elsewhere, so that the stream is forgotten
        said += streams.on_fault({static_cast<std::uint32_t>(random() % kWindowPages)}, kWindowPages).unused;
    }
    EXPECT_GT(said, in_vain);
    return said;
  };
  std::uint32_t first = brought_in_vain(100), later = (brought_in_vain(300), brought_in_vain(100));
  EXPECT_GT(first,
            600u);  // 1, 2, 4 and 8 pages for 9: up to 7 in vain, and one more that the record's end does not tell
  EXPECT_LT(later, first / 2);

  // A long stream proves itself, and once most of what is brought is used all windows grow as before.
  std::uint64_t at = 0, longest = 0;
  for (int i = 0; i < 100; ++i) {
    StreamWindow window = streams.on_fault({at}, kWindowPages);
    longest = std::max<std::uint64_t>(longest, window.run.count);
    at = window.run.end().value;
  }
  EXPECT_EQ(longest, 64u);
  at = kWindowPages / 2;
  for (std::uint32_t expected : {1u, 2u, 4u, 8u, 16u, 32u, 64u}) {
    StreamWindow window = streams.on_fault({at}, kWindowPages);
    EXPECT_EQ(window.run.count, expected);
    at = window.run.end().value;
  }
}

TEST(StreamsTest, WhatWasNotBroughtWasNotInVain) {
  Streams streams(64, false);
  std::uint64_t at = 100;
  for (int i = 0; i < 5; ++i) at = streams.on_fault({at}, kWindowPages).run.end().value;
  streams.brought_only({115}, 3);
  std::uint32_t unused = 0;
  for (std::uint32_t i = 0; i < 40; ++i) unused += streams.on_fault({10'000 + 5000 * i}, kWindowPages).unused;
  EXPECT_EQ(unused, 3u);
}

TEST(StreamsTest, ReadAheadCanBeOff) {
  Streams streams(0, false);
  for (std::uint64_t at = 0; at < 10; ++at) EXPECT_EQ(streams.on_fault({at}, kWindowPages).run.count, 1u);
}

}  // namespace
}  // namespace hinterland
