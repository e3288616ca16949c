// Replay against what it foretells: a program of which all accesses are known, recorded with little memory and
// foretold with more.
#include "trace/replay.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>

#include "policy/policies.hpp"
#include "trace/scan_gaps.hpp"

namespace hinterland::trace {
namespace {

constexpr std::uint64_t kBase = 0x7000'0000'0;  // a page

ReplayOptions options(std::uint64_t pages, std::uint32_t read_ahead = 0,
                      const hl_policy_ops& policy = kSecondChancePolicy) {
  ReplayOptions options;
  options.local_bytes = pages << kPageShift;
  options.policy = &policy;
  options.read_ahead_pages = read_ahead;
  return options;
}

ProcessFacts recorded_with(std::uint64_t pages, const hl_policy_ops& policy = kSecondChancePolicy) {
  ProcessFacts facts;
  facts.program = "program";
  facts.policy = policy.name;
  facts.far_url = "mem:";
  facts.process_id = facts.started_ns = 1;
  facts.local_bytes = pages << kPageShift;
  return facts;
}

class ReplayTest : public ::testing::Test {
 protected:
  ReplayTest() : path_(std::filesystem::temp_directory_path() / ("replay_test." + std::to_string(getpid()))) {}
  ~ReplayTest() override { std::filesystem::remove(path_); }

  // What a trace has of these accesses with so many pages local: those that fault.
  void record(const std::vector<FaultRecord>& accesses, std::uint64_t pages,
              const hl_policy_ops& policy = kSecondChancePolicy) {
    Result<TraceWriter> writer = TraceWriter::create(path_, true);
    ASSERT_TRUE(writer);
    writer->process(recorded_with(pages, policy));
    Replay run(options(pages, 0, policy));
    for (FaultRecord each : accesses) {
      ReplayResult before = run.result();
      run.fault(each);
      if (run.result().refaults != before.refaults) each.kind = FaultKind::refault;
      if (run.result().faults() != before.faults()) writer->fault(each);
    }
    ASSERT_EQ(writer->flush(), 0);
  }
  using HintOf = std::function<const ReplayHint*(const FaultRecord&)>;
  ReplayResult foretold(
      const ReplayOptions& settings, bool with_outlook = true,
      const HintOf& hint_of = [](const FaultRecord&) { return nullptr; }) const {
    Result<TraceFile> file = TraceFile::open(path_);
    if (!file) throw std::runtime_error(file.error().what());
    ReplayOptions all = settings;
    if (with_outlook) all.outlook = std::make_shared<const ReplayOutlook>(*file);
    Replay replay(all);
    std::uint64_t last_page = 0;  // one place, one thread
    file->for_each_fault([&](const FaultRecord& fault) { replay.access(fault, hint_of(fault), &last_page); });
    return replay.result();
  }
  static ReplayResult real(const std::vector<FaultRecord>& accesses, const ReplayOptions& settings) {
    Replay run(settings);
    for (const FaultRecord& each : accesses) run.fault(each);
    return run.result();
  }

  std::string path_;
};

double ratio(std::uint64_t a, std::uint64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

// Pages that are touched most are hits when it is recorded, and yet must leave with more memory now and then, because
// pages leave in the order in which they came: the trace has nothing of them at that time.
TEST_F(ReplayTest, KnowsOfAccessesThatTheTraceHasNot) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform;
  std::vector<FaultRecord> accesses;
  for (std::uint64_t i = 0; i < 400'000; ++i)
    accesses.push_back(
        {.time_ns = i, .page = kBase + static_cast<std::uint64_t>(8000 * std::pow(uniform(random), 6.0))});
  record(accesses, 800);
  for (std::uint64_t pages : {1000u, 2000u, 4000u}) {
    std::uint64_t faults = real(accesses, options(pages)).faults();
    EXPECT_NEAR(ratio(foretold(options(pages)).faults(), faults), 1, 0.03) << pages;
    if (pages == 1000) {
      EXPECT_LT(ratio(foretold(options(pages), false).faults(), faults), 0.94) << "the test shows nothing";
    }
  }
}

// Which pages miss is decided by their accesses, whoever brings them: hints spare faults and hardly change what
// stays.
TEST_F(ReplayTest, HintsOfSomePagesMakeNoMoreOfThemMiss) {
  std::mt19937_64 random(2);
  std::vector<FaultRecord> accesses;
  for (std::uint64_t i = 0; i < 60'000; ++i) accesses.push_back({.time_ns = i, .page = kBase + random() % 2048});
  record(accesses, 1200);  // as if reclaim had been late: pages stayed longer than the model takes them to
  ReplayHint hint;
  ReplayResult without = foretold(options(1024));
  ReplayResult with =
      foretold(options(1024), true, [&](const FaultRecord& fault) { return fault.page % 8 != 0 ? &hint : nullptr; });
  EXPECT_GT(with.hinted_fetches, without.fetches / 2);
  EXPECT_LT(with.fetches, without.fetches / 4);
  EXPECT_NEAR(ratio(with.fetches + with.hinted_fetches, without.fetches), 1, 0.1);
}

// The learner is foretold, too, although what it learns hangs on what it sees.
TEST_F(ReplayTest, ForetellsTheLearner) {
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> uniform;
  std::vector<FaultRecord> accesses;
  for (std::uint64_t i = 0; i < 400'000; ++i)
    accesses.push_back(
        {.time_ns = i, .page = kBase + static_cast<std::uint64_t>(8000 * std::pow(uniform(random), 6.0))});
  record(accesses, 800, kLearnerPolicy);
  for (std::uint64_t pages : {1000u, 2000u, 4000u}) {
    ReplayOptions settings = options(pages, 0, kLearnerPolicy);
    EXPECT_NEAR(ratio(foretold(settings).faults(), real(accesses, settings).faults()), 1, 0.1) << pages;
  }
}

// A scan of pages that stayed when it was recorded is a scan to its hint, too, where they leave.
TEST_F(ReplayTest, ASequentialHintGoesAlongWithWhatTheTraceHasNot) {
  std::mt19937_64 random(3);
  std::vector<FaultRecord> accesses;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    bool scans = i / 512 % 2 == 0;
    accesses.push_back({.time_ns = i, .page = kBase + (scans ? i % 512 : 1000 + random() % 2000)});
  }
  // First in, first out: the victims do not depend on what the trace has not.
  record(accesses, 1000, kFifoPolicy);
  ReplayHint hint;
  hint.sequential = true;
  auto hint_of = [&](const FaultRecord& fault) { return fault.page < kBase + 512 ? &hint : nullptr; };
  ReplayOptions settings = options(1400, 64, kFifoPolicy);
  std::uint64_t last = 0;
  Replay whole(settings);
  for (const FaultRecord& each : accesses) whole.access(each, hint_of(each), &last);
  ReplayResult known = foretold(settings, true, hint_of);
  EXPECT_LT(ratio(known.hinted_fetches, whole.result().hinted_fetches), 1.4);
  EXPECT_GT(ratio(known.hinted_fetches, whole.result().hinted_fetches), 0.6);
}

TEST_F(ReplayTest, ForetellsScansWithReadAhead) {
  std::vector<FaultRecord> accesses;
  for (std::uint64_t i = 0; i < 60'000; ++i)
    accesses.push_back({.time_ns = i, .page = kBase + i % 6000, .write = i % 6000 < 1000});
  record(accesses, 800);
  for (std::uint64_t pages : {2000u, 4000u}) {
    ReplayResult run = real(accesses, options(pages, 64)), known = foretold(options(pages, 64));
    EXPECT_NEAR(ratio(known.faults(), run.faults()), 1, 0.05) << pages;
    EXPECT_NEAR(ratio(known.pages_out, run.pages_out), 1, 0.05) << pages;
    EXPECT_LT(known.faults(), accesses.size() / 4) << pages;
  }
}

TEST_F(ReplayTest, ForetellsScansInSteps) {
  std::vector<FaultRecord> accesses;
  for (std::uint64_t i = 0; i < 60'000; ++i)
    accesses.push_back({.time_ns = i, .page = kBase + i % 600 * 10 + i / 600 % 10});
  record(accesses, 800);
  ReplayResult run = real(accesses, options(2000, 64)), known = foretold(options(2000, 64));
  EXPECT_NEAR(ratio(known.faults(), run.faults()), 1, 0.05);
  EXPECT_LT(known.faults(), accesses.size() / 4);
}

// Memory that is freed and touched again comes in runs of zeros, and what it held is not written.
TEST_F(ReplayTest, FreedMemoryIsUntouched) {
  Result<TraceWriter> writer =
      TraceWriter::create(std::filesystem::temp_directory_path() / "replay_test.freed", true);
  ASSERT_TRUE(writer);
  writer->process(recorded_with(800));
  for (std::uint64_t i = 0; i < 40'000; ++i)
    writer->fault({.time_ns = i, .page = kBase + i % 4000, .kind = FaultKind::first_touch, .write = true});
  ASSERT_EQ(writer->flush(), 0);
  Result<TraceFile> file = TraceFile::open(writer->path());
  std::filesystem::remove(writer->path());
  ASSERT_TRUE(file);
  ReplayOptions settings = options(2000, 64);
  settings.outlook = std::make_shared<const ReplayOutlook>(*file);
  Replay replay(settings);
  file->for_each_fault([&](const FaultRecord& fault) { replay.fault(fault); });
  EXPECT_EQ(replay.result().fetches, 0u);
  EXPECT_LT(replay.result().first_touch, 1500u);
  EXPECT_LT(replay.result().pages_out, 4000u);  // the last round alone is kept
}

// Every 60th page is touched all the time: it stays, and the scan's faults leave it out. That the scan touched it,
// and when, must be known: with more memory and read-ahead it comes and goes with its neighbours.
TEST_F(ReplayTest, KnowsWhatAScanLeftOut) {
  std::vector<FaultRecord> accesses;
  for (std::uint64_t i = 0; i < 120'000; ++i) {
    accesses.push_back({.time_ns = i, .page = kBase + i % 6000});
    if (i % 4 == 0) accesses.push_back({.time_ns = i, .page = kBase + i / 4 % 100 * 60});
  }
  record(accesses, 800);
  Result<TraceFile> file = TraceFile::open(path_);
  ASSERT_TRUE(file);
  ReplayOutlook outlook(*file);
  EXPECT_GT(outlook.touches().size(), 1000u);  // of at most 19 rounds of 100 pages
  std::vector<FaultRecord> faults;
  file->for_each_fault([&](const FaultRecord& fault) { faults.push_back(fault); });
  std::size_t just_behind = 0;
  for (const ReplayOutlook::Touch& touch : outlook.touches())
    just_behind +=
        touch.page < faults[touch.number].page && faults[touch.number].page <= touch.page + ScanGaps::kGapMax;
  // Now and then one of the pages in between is taken for the scan's next.
  EXPECT_GT(just_behind, outlook.touches().size() * 9 / 10);
}

// Rounds of a mapping that is filled and given back, beside memory that is used in each round and has room with it.
class ReplayFreedTest : public ReplayTest {
 protected:
  enum class Given { unknown, unmapped, freed };
  ReplayResult foretold_when(Given given, std::uint64_t pages) {
    std::string path = std::filesystem::temp_directory_path() / ("replay_freed." + std::to_string(getpid()));
    Result<TraceWriter> writer = TraceWriter::create(path, true);
    if (!writer) throw std::runtime_error(writer.error().what());
    writer->process(recorded_with(800));
    std::uint64_t now = 1;
    for (std::uint64_t round = 0; round < 10; ++round) {
      for (std::uint64_t page = 0; page < 2000; ++page)
        writer->fault({.time_ns = ++now,
                       .page = kBase + page,
                       .kind = round == 0 ? FaultKind::first_touch : FaultKind::read,
                       .write = round == 0});
      std::uint64_t first = kBase + 10'000 * (round + 1);
      AllocationRecord block{.time_ns = ++now, .address = first << kPageShift, .bytes = 2500 << kPageShift};
      block.stands_for = block.bytes;
      if (given != Given::unmapped) writer->allocation(block);
      for (std::uint64_t page = 0; page < 2500; ++page)
        writer->fault({.time_ns = ++now, .page = first + page, .kind = FaultKind::first_touch, .write = true});
      block.time_ns = ++now;
      block.kind = given == Given::unmapped ? AllocationKind::range_ended : AllocationKind::block_ended;
      if (given == Given::freed) block.bytes = block.stands_for = 0;
      if (given != Given::unknown) writer->allocation(block);
    }
    EXPECT_EQ(writer->flush(), 0);
    Result<TraceFile> file = TraceFile::open(path);
    std::filesystem::remove(path);
    if (!file) throw std::runtime_error(file.error().what());
    ReplayOptions settings = options(pages);
    settings.outlook = std::make_shared<const ReplayOutlook>(*file);
    Replay replay(settings);
    file->for_each_fault([&](const FaultRecord& fault) { replay.fault(fault); });
    return replay.result();
  }
};

TEST_F(ReplayFreedTest, WhatIsUnmappedTakesNoRoom) {
  EXPECT_GT(foretold_when(Given::unknown, 5000).fetches, 1000u) << "the test shows nothing";
  EXPECT_EQ(foretold_when(Given::unmapped, 5000).fetches, 0u);
}

TEST_F(ReplayFreedTest, WhatIsFreedIsNotWritten) {
  std::uint64_t unknown = foretold_when(Given::unknown, 5000).pages_out;
  EXPECT_GT(unknown, 20'000u) << "the test shows nothing";
  EXPECT_LT(foretold_when(Given::freed, 5000).pages_out, unknown / 4);
}

// A block that the program gives back and gets again leaves after what it touched meanwhile.
TEST_F(ReplayFreedTest, WhatIsTakenAgainIsNew) {
  auto pages_in = [](bool gets_it_again) {
    constexpr std::uint64_t kPages = 1000;
    const std::string path = std::filesystem::temp_directory_path() / ("replay_taken." + std::to_string(getpid()));
    Result<TraceWriter> writer = TraceWriter::create(path, true);
    if (!writer) throw std::runtime_error(writer.error().what());
    writer->process(recorded_with(800, kFifoPolicy));
    std::uint64_t now = 1;
    auto touch = [&](std::uint64_t first, FaultKind kind) {
      for (std::uint64_t page = first; page < first + kPages; ++page)
        writer->fault({.time_ns = ++now, .page = page, .kind = kind, .write = true});
    };
    constexpr std::uint64_t kBlock = kBase, kOld = kBase + 10'000, kFresh = kBase + 20'000;
    AllocationRecord made{.address = kBlock << kPageShift, .bytes = kPages << kPageShift};
    made.stands_for = made.bytes;
    AllocationRecord ended = made;
    ended.kind = AllocationKind::block_ended;
    auto say = [&](AllocationRecord& record) {
      record.time_ns = ++now;
      writer->allocation(record);
    };
    say(made);
    touch(kBlock, FaultKind::first_touch);
    touch(kOld, FaultKind::first_touch);
    say(ended);
    if (gets_it_again) say(made);
    touch(kFresh, FaultKind::first_touch);
    touch(kOld, FaultKind::read);
    touch(kBlock, FaultKind::first_touch);  // it was given back once more
    EXPECT_EQ(writer->flush(), 0);
    Result<TraceFile> file = TraceFile::open(path);
    std::filesystem::remove(path);
    if (!file) throw std::runtime_error(file.error().what());
    ReplayOptions settings = options(5 * kPages / 2, 0, kFifoPolicy);
    settings.outlook = std::make_shared<const ReplayOutlook>(*file);
    Replay replay(settings);
    file->for_each_fault([&](const FaultRecord& fault) { replay.fault(fault); });
    return replay.result().fetches + replay.result().refaults;
  };
  EXPECT_EQ(pages_in(false), 0u);
  EXPECT_GT(pages_in(true), 400u);
}

TEST(ReplayFarSpace, FillsGapsWhenThereIsNoRoomForRuns) {
  ReplayFarSpace space;
  std::vector<std::uint64_t> first = space.take(4096);  // a slab
  for (std::size_t i = 1; i < first.size(); ++i) ASSERT_EQ(first[i], first[0] + i);
  for (std::size_t i = 0; i < first.size(); i += 2) space.let_go(&first[i]);
  EXPECT_EQ(first[0], ReplayFarSpace::kNone);
  std::vector<std::uint64_t> again = space.take(100);  // half of the slab is free, in gaps of one page
  for (std::size_t i = 1; i < again.size(); ++i) EXPECT_EQ(again[i], again[i - 1] + 2);
  space.take(1948);
  std::vector<std::uint64_t> more = space.take(64);  // nothing is free there
  EXPECT_GT(more[0], first[1] + 4094);
  EXPECT_EQ(more[63], more[0] + 63);
}

// Its policy chooses what it is told to, and notes why pages arrive.
struct ToldPolicy {
  static inline std::vector<hl_page> victims;
  static inline std::vector<hl_arrival> why;
  static void* create(const hl_policy_env*) { return &victims; }
  static void arrived(void*, hl_page, std::uint32_t count, hl_arrival how, std::uint8_t) {
    why.insert(why.end(), count, how);
  }
  static void departed(void*, hl_page, std::uint32_t) {}
  static std::uint32_t choose(void*, hl_page* out, std::uint32_t max) {
    std::uint32_t count = std::min<std::uint32_t>({max, 4, static_cast<std::uint32_t>(victims.size())});
    std::copy_n(victims.begin(), count, out);
    victims.erase(victims.begin(), victims.begin() + count);
    return count;
  }
  static std::uint64_t size(void*) { return victims.size(); }
};
constexpr hl_policy_ops kToldPolicy = {HL_POLICY_ABI_VERSION,
                                       "told",
                                       "",
                                       ToldPolicy::create,
                                       ToldPolicy::arrived,
                                       ToldPolicy::departed,
                                       ToldPolicy::choose,
                                       ToldPolicy::size,
                                       nullptr,
                                       nullptr,
                                       0};

// As Fetcher::start_direct(): what lies beside the page asked for on the device arrives with it, by the same fault.
TEST(ReplayPager, PagesThatLieApartOnTheDeviceAreReadAhead) {
  for (bool apart : {false, true}) {
    ToldPolicy::victims =
        apart ? std::vector<hl_page>{0, 2, 4, 6, 1, 3, 5, 7} : std::vector<hl_page>{0, 1, 2, 3, 4, 5, 6, 7};
    for (hl_page page = 8; page < 120; ++page) ToldPolicy::victims.push_back(page);
    ReplayPager pager(256 << kPageShift, &kToldPolicy, "", true);
    for (std::uint64_t page = kBase; page < kBase + 250; ++page) pager.bring_zeros(page, 1, page);
    std::vector<std::uint64_t> left;
    pager.keep_room(1, &left);
    for (std::uint64_t page = kBase; page < kBase + 8; ++page)
      ASSERT_EQ(pager.page_at(page).state, ReplayPage::State::far);
    ToldPolicy::why.clear();
    ReplayPager::Fetch wanted{.first = kBase, .count = 8, .asked = kBase + 3, .asked_end = kBase + 4};
    pager.begin(wanted);
    pager.finish(wanted);
    EXPECT_EQ(std::count(ToldPolicy::why.begin(), ToldPolicy::why.end(), HL_ARRIVAL_FAULT), apart ? 1 : 8);
    EXPECT_EQ(ToldPolicy::why.size(), 8u);
  }
}

// A write that no fault shows is taken to happen where it was expected.
TEST_F(ReplayTest, ExpectedWritesAreWrites) {
  for (bool expected : {false, true}) {
    Replay replay(options(1000));
    for (std::uint64_t i = 0; i < 40'000; ++i)
      replay.fault({.time_ns = i, .page = kBase + i % 4000, .expects_write = expected});
    EXPECT_EQ(replay.result().pages_out > 30'000, expected);
  }
}

// Thirty-two pages that are used in each round, beside a scan that is not admitted.
TEST(ReplayPager, WhatAPolicyDoesNotAdmitLeavesFirst) {
  static unsigned ticks;
  ticks = 0;
  hl_policy_ops admitting = kFifoPolicy;
  admitting.admits = [](void*, hl_page page, hl_arrival) { return page < 32 ? 1 : 0; };
  admitting.tick = [](void*, std::uint64_t) { ++ticks; };
  auto fetches = [](const hl_policy_ops& policy) {
    Replay run(options(256, 0, policy));
    std::uint64_t scanned = 0, time_ns = 0;
    for (int round = 0; round < 20; ++round) {
      for (std::uint64_t page = 0; page < 32; ++page) run.fault({.time_ns = ++time_ns, .page = kBase + page});
      for (int i = 0; i < 200; ++i) run.fault({.time_ns = ++time_ns, .page = kBase + 32 + scanned++ % 2000});
      time_ns += PolicyHost::kTickNs;
    }
    return run.result().fetches;
  };
  EXPECT_LT(fetches(admitting) + 300, fetches(kFifoPolicy));
  EXPECT_EQ(ticks, 20u);
}

TEST(ReplayFrames, ExpireInOrder) {
  ReplayFrames frames;
  std::vector<hl_page> gone;
  auto note = [&](hl_page page) { gone.push_back(page); };
  std::uint64_t places[8];
  for (hl_page page = 0; page < 8; ++page) places[page] = frames.park(page);
  frames.leave(places[0], false);
  frames.leave(places[2], false);
  EXPECT_EQ(frames.used(), 7u);
  frames.leave(places[4], true);  // its memory is still there, but nobody's page
  EXPECT_EQ(frames.expire(2, note), 2u);
  EXPECT_EQ(gone, (std::vector<hl_page>{1, 3}));
  EXPECT_EQ(frames.expire(3, note), 3u);
  EXPECT_EQ(gone, (std::vector<hl_page>{1, 3, 5, 6}));
  EXPECT_EQ(frames.used(), 1u);
}

}  // namespace
}  // namespace hinterland::trace
