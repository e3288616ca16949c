// Faults by allocation, of traces made here whose truth is known.
#include "trace/allocation_profile.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace hinterland::trace {
namespace {

constexpr std::uint64_t kStarted = 5'000'000;  // monotonic
constexpr std::uint64_t kHeap = 0x7f0000000000, kMiB = 1 << 20, kPage = 4096;

class AllocationProfileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/allocation_profile_test.XXXXXX";
    int file = mkstemp(name);
    ASSERT_GE(file, 0);
    close(file);
    path_ = name;
    Result<TraceWriter> writer = TraceWriter::create(path_, true);
    ASSERT_TRUE(writer) << writer.error().what();
    writer_ = std::make_unique<TraceWriter>(std::move(*writer));
    ProcessFacts facts;
    facts.program = "made";
    facts.started_ns = kStarted;
    writer_->process(facts);
  }
  void TearDown() override { unlink(path_.c_str()); }

  // Places are named after their code's address.
  void made(std::uint64_t at, std::uint64_t address, std::uint64_t bytes, std::uint64_t code,
            std::uint64_t stands_for = 0, AllocationKind kind = AllocationKind::block) {
    writer_->allocation({kind, kStarted + at, address, bytes, stands_for != 0 ? stands_for : bytes, 0,
                         writer_->stack({{code}, false})});
  }
  void ended(std::uint64_t at, std::uint64_t address, std::uint64_t made_at) {
    writer_->allocation({AllocationKind::block_ended, kStarted + at, address, 0, 0, kStarted + made_at});
  }
  void unmapped(std::uint64_t at, std::uint64_t address, std::uint64_t bytes) {
    writer_->allocation({AllocationKind::range_ended, kStarted + at, address, bytes, bytes});
  }
  void fault(std::uint64_t at, std::uint64_t address) {
    writer_->fault({at, address / kPage, 1, FaultKind::read, false});
  }
  AllocationProfile finish() {
    writer_->summary({.ended_ns = 1'000'000, .complete = 1});
    EXPECT_EQ(writer_->flush(), 0);
    TraceFile file = std::move(*TraceFile::open(path_));
    Symbols symbols(file);
    return make_allocation_profile(file, symbols);
  }
  static double of(const AllocationProfile& profile, const std::string& name) {
    double sum = 0;
    for (const Site& site : profile.sites)
      if (site.function.find(name) != std::string::npos) sum += site.all;
    return sum;
  }

  std::string path_;
  std::unique_ptr<TraceWriter> writer_;
};

TEST_F(AllocationProfileTest, AFaultBelongsToWhatLivedThen) {
  made(100, kHeap, kMiB, 0xaaa);
  fault(200, kHeap + 5 * kPage);
  ended(300, kHeap, 100);
  fault(400, kHeap + 5 * kPage);  // nobody's
  made(500, kHeap, kMiB / 2, 0xbbb);
  fault(600, kHeap + 5 * kPage);
  fault(601, kHeap + kMiB - kPage);  // beyond it
  AllocationProfile profile = finish();
  EXPECT_DOUBLE_EQ(of(profile, "aaa"), 1);
  EXPECT_DOUBLE_EQ(of(profile, "bbb"), 1);
  EXPECT_DOUBLE_EQ(of(profile, "not attributed"), 2);
  EXPECT_DOUBLE_EQ(profile.exact, 2);
  EXPECT_DOUBLE_EQ(profile.estimated, 0);
}

// Threads record in any order: a block's end may come behind the next life of its address.
TEST_F(AllocationProfileTest, ALateEndDoesNotEndTheNextLife) {
  made(500, kHeap, kMiB, 0xbbb);
  made(100, kHeap, kMiB, 0xaaa);
  ended(501, kHeap, 100);
  fault(200, kHeap);
  fault(600, kHeap);
  AllocationProfile profile = finish();
  EXPECT_DOUBLE_EQ(of(profile, "aaa"), 1);
  EXPECT_DOUBLE_EQ(of(profile, "bbb"), 1);
}

// Before the process had its ring: from the beginning of the trace it is there.
TEST_F(AllocationProfileTest, WhatIsOlderThanTheTraceCounts) {
  writer_->allocation(
      {AllocationKind::block, kStarted - 4'000'000, kHeap, kMiB, kMiB, 0, writer_->stack({{0xaaa}, false})});
  fault(0, kHeap);
  EXPECT_DOUBLE_EQ(of(finish(), "aaa"), 1);
}

TEST_F(AllocationProfileTest, UnmappingAPartLeavesTheRest) {
  made(100, kHeap, 8 * kPage, 0xaaa, 0, AllocationKind::mapping);
  unmapped(200, kHeap + 2 * kPage, 2 * kPage);
  unmapped(201, kHeap + 7 * kPage, 5 * kPage);
  unmapped(202, kHeap - 3 * kPage, 4 * kPage);
  for (std::uint64_t page = 0; page < 8; ++page) fault(300 + page, kHeap + page * kPage);
  AllocationProfile profile = finish();
  EXPECT_DOUBLE_EQ(of(profile, "aaa"), 4);  // pages 1, 4, 5 and 6
  EXPECT_DOUBLE_EQ(of(profile, "not attributed"), 4);
  EXPECT_EQ(profile.sites[0].via.count("mmap"), 1u);
}

// One in 256 KiB of small blocks of two places, one with three times as much memory as the other: so are the faults.
TEST_F(AllocationProfileTest, ASampleOfSmallBlocksStandsForAll) {
  constexpr std::uint64_t kEach = 64, kSamples = 400;
  for (std::uint64_t i = 0; i < kSamples; ++i)
    made(i, kHeap + i * kAllocationInterval + i % 60 * 64, kEach, i % 4 == 0 ? 0xbbb : 0xaaa, kAllocationInterval);
  for (std::uint64_t page = 0; page < kSamples * 64; ++page) fault(1000 + page, kHeap + page * kPage);
  AllocationProfile profile = finish();
  EXPECT_NEAR(of(profile, "aaa") / of(profile, "bbb"), 3, 1e-9);
  EXPECT_NEAR(profile.estimated, kSamples * 64, 1);
  EXPECT_DOUBLE_EQ(profile.exact, 0);
}

// More than there is cannot be attributed, whatever the sample says.
TEST_F(AllocationProfileTest, SharesNeverExceedTheFaults) {
  made(1, kHeap, 64, 0xaaa, kAllocationInterval);
  made(2, kHeap + kMiB, kMiB, 0xbbb);
  for (std::uint64_t i = 0; i < 10; ++i) fault(100 + i, kHeap);
  fault(200, kHeap + kMiB);
  AllocationProfile profile = finish();
  EXPECT_DOUBLE_EQ(profile.exact, 1);
  EXPECT_DOUBLE_EQ(profile.estimated, 10);
  double sum = 0;
  for (const Site& site : profile.sites) sum += site.all;
  EXPECT_DOUBLE_EQ(sum, 11);
}

// Sizes that wrap around, blocks of nothing, ends of what never began.
TEST_F(AllocationProfileTest, NonsenseIsHarmless) {
  made(1, ~std::uint64_t{0} - 100, 500, 0xaaa);
  made(2, kHeap, 0, 0xbbb, 5);
  made(3, kHeap, ~std::uint64_t{0}, 0xccc);
  ended(4, 12345, 6789);
  unmapped(5, 0, ~std::uint64_t{0});
  fault(10, kHeap);
  AllocationProfile profile = finish();
  double sum = 0;
  for (const Site& site : profile.sites) sum += site.all;
  EXPECT_DOUBLE_EQ(sum, 1);
}

}  // namespace
}  // namespace hinterland::trace
