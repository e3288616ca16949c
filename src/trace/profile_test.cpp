// Profiles of traces made here, whose shares are known.
#include "trace/profile.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "base/clock.hpp"
#include "trace/exports.hpp"
#include "trace/flame_graph.hpp"

namespace hinterland::trace {
namespace {

class ProfileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/profile_test.XXXXXX";
    int file = mkstemp(name);
    ASSERT_GE(file, 0);
    close(file);
    path_ = name;
    Result<TraceWriter> writer = TraceWriter::create(path_, true);
    ASSERT_TRUE(writer) << writer.error().what();
    writer_ = std::make_unique<TraceWriter>(std::move(*writer));
    ProcessFacts facts;
    facts.program = "made";
    writer_->process(facts);
  }
  void TearDown() override { unlink(path_.c_str()); }

  TraceFile finish(std::uint64_t ended_ns) {
    Summary summary;
    summary.ended_ns = ended_ns;
    writer_->summary(summary);
    EXPECT_EQ(writer_->flush(), 0);
    return std::move(*TraceFile::open(path_));
  }
  // One stack of one address: its place is named after the address.
  void sample(const FaultRecord& fault, std::uint64_t address, std::uint64_t weight) {
    writer_->sample({fault, fault.page << 12, writer_->stack({{address}, true}), weight, 1000});
  }

  std::string path_;
  std::unique_ptr<TraceWriter> writer_;
};

// Two phases of 10,000 faults each. In the second the kernel's spacing says half of what is right; the shares are
// equal all the same.
TEST_F(ProfileTest, SamplesAreWeighedByWhatIsKnownOfAllFaults) {
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    bool second = i >= 10'000;
    FaultRecord fault{i * 1000, 5000 + i % 777, 1, second ? FaultKind::write : FaultKind::read, second};
    writer_->fault(fault);
    if (i % 10 == 0) sample(fault, second ? 0x2000 : 0x1000, second ? 5 : 10);
  }
  TraceFile file = finish(20'000'000);
  Symbols symbols(file);
  Profile profile = make_profile(file, symbols, GroupBy::line);
  ASSERT_EQ(profile.sites.size(), 2u);
  EXPECT_NEAR(profile.sites[0].all, 10'000, 1);
  EXPECT_NEAR(profile.sites[1].all, 10'000, 1);
  EXPECT_EQ(profile.faults_all, 20'000u);
  EXPECT_NEAR(profile.sampled_faults, 15'000, 1);
}

// A span without a sample hands its faults to the others: nothing is lost from the sum.
TEST_F(ProfileTest, FaultsWithoutSamplesAreNotForgotten) {
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    FaultRecord fault{i * 1000, 5000, 1, FaultKind::read, false};
    writer_->fault(fault);
    if (i < 5000 && i % 5 == 0) sample(fault, 0x1000, 5);
  }
  TraceFile file = finish(10'000'000);
  Symbols symbols(file);
  Profile profile = make_profile(file, symbols, GroupBy::line);
  ASSERT_EQ(profile.sites.size(), 1u);
  EXPECT_NEAR(profile.sites[0].all, 10'000, 1);
}

TEST_F(ProfileTest, CoverageCountsTheFewestPlaces) {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    FaultRecord fault{i, i, 1, FaultKind::read, false};
    writer_->fault(fault);
    sample(fault, i < 600 ? 0x1000 : i < 900 ? 0x2000 : 0x3000 + i, 1);
  }
  TraceFile file = finish(1000);
  Symbols symbols(file);
  Profile profile = make_profile(file, symbols, GroupBy::line);
  EXPECT_EQ(profile.sites.size(), 102u);
  EXPECT_EQ(profile.sites_covering(0.5), 1u);
  EXPECT_EQ(profile.sites_covering(0.9), 2u);
  EXPECT_EQ(profile.sites_covering(0.95), 52u);
  EXPECT_EQ(profile.sites_covering(1), 102u);
}

// Callers are shared, equal stacks of several threads are one, and what is too narrow to be seen is left out.
TEST_F(ProfileTest, StacksBecomeOneTree) {
  auto record = [&](std::vector<std::uint64_t> addresses, std::uint64_t thread, int times, FaultKind kind) {
    for (int i = 0; i < times; ++i) {
      FaultRecord fault{1, 1, thread, kind, false};
      writer_->fault(fault);
      writer_->sample({fault, 4096, writer_->stack({addresses, true}), 1, 0});
    }
  };
  record({0x30, 0x20, 0x10}, 1, 100'000, FaultKind::read);  // innermost first
  record({0x30, 0x20, 0x10}, 2, 50'000, FaultKind::read);
  record({0x40, 0x20, 0x10}, 1, 200'000, FaultKind::write);
  record({0x20, 0x10}, 1, 7, FaultKind::read);
  record({0x50, 0x10}, 1, 1, FaultKind::read);
  TraceFile file = finish(2);
  Symbols symbols(file);
  FlameGraph graph = make_flame_graph(file, make_profile(file, symbols, GroupBy::line), symbols);
  EXPECT_EQ(graph.frames, (std::vector<std::string>{"all faults", "0x10", "0x20", "0x30", "0x40", "0x50"}));
  EXPECT_EQ(graph.tree, "[[0,1],[0,150008,200000],[[2,[0,150007,200000],[[4,[0,0,200000],[]],[3,[0,150000],[]]]]]]");
}

TEST_F(ProfileTest, AnEmptyTraceIsAnEmptyProfile) {
  TraceFile file = finish(0);
  Symbols symbols(file);
  Profile profile = make_profile(file, symbols, GroupBy::thread);
  EXPECT_TRUE(profile.sites.empty());
  EXPECT_EQ(profile.sites_covering(0.95), 0u);
  EXPECT_EQ(folded_text(file, profile, symbols), "");
  EXPECT_EQ(make_flame_graph(file, profile, symbols).tree, "[0,[],[]]");
}

// Target: under 500 MiB. The time, for which the target is 10 s, depends on the machine: it is recorded.
TEST_F(ProfileTest, AMillionSamplesFit) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // they do not tell whether it fits
  constexpr std::uint64_t kSamples = 50'000;
#else
  constexpr std::uint64_t kSamples = 1'000'000;
#endif
  constexpr std::uint64_t kStacks = kSamples / 10, kDepth = 20;
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    FaultRecord fault{i * 1000, i * 2654435761 % 500'000, 1 + i % 8, static_cast<FaultKind>(i % 5), false};
    writer_->fault(fault);
    Stack stack;
    std::uint64_t number = i * 48271 % kStacks;
    for (std::uint64_t depth = 0; depth < kDepth; ++depth)
      stack.addresses.push_back(0x400000 + number / (depth + 1) % 5000 * 16 + depth);
    writer_->sample({fault, fault.page << 12, writer_->stack(stack), 1, 3000});
    if (i % 10'000 == 0) writer_->flush();
  }
  TraceFile file = finish(kSamples * 1000);
  writer_.reset();
  std::uint64_t start = now_ns();
  Symbols symbols(file);
  Profile profile = make_profile(file, symbols, GroupBy::function);
  std::string folded = folded_text(file, profile, symbols);
  RecordProperty("report_ms", static_cast<int>((now_ns() - start) / 1'000'000));
  EXPECT_EQ(profile.faults_all, kSamples);
  EXPECT_FALSE(folded.empty());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which take memory of their own
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 500 * 1024);  // KiB; of writing it, too
#endif
}

}  // namespace
}  // namespace hinterland::trace
