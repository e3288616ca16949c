// The trace file: what is written is read, and what is damaged costs only itself.
#include "trace/trace_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/units.hpp"
#include "trace/trace_format.hpp"

namespace hinterland::trace {
namespace {

class TraceFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/trace_file_test.XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    path_ = folder_ + "/a.trace";
  }
  void TearDown() override {
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }
  // 1000 faults, each tenth with one of three stacks.
  void write(bool overwrite = false) {
    Result<TraceWriter> writer = TraceWriter::create(path_, overwrite);
    ASSERT_TRUE(writer) << writer.error().what();
    ProcessFacts facts;
    facts.program = "subject";
    facts.process_id = 42;
    facts.window_base = 1ull << 46;
    facts.source = StackSource::kernel_unwound;
    writer->process(facts);
    writer->module({0x1000, 0x2000, 0x400, std::string("\0\1\2", 3), "/bin/subject"});
    writer->thread_name(7, "worker");
    for (std::uint64_t i = 0; i < 1000; ++i) {
      FaultRecord fault{i * 1000, (1ull << 34) + (i * 7919) % 5000, 7 + i % 3, static_cast<FaultKind>(i % 5),
                        i % 2 == 0};
      writer->fault(fault);
      if (i % 10 != 0) continue;
      Stack stack{{0x1500 + i % 3, 0x1100, 0x7fffffff0000}, i % 3 != 2};
      writer->sample({fault, (fault.page << kPageShift) + 8, writer->stack(stack), 10, 5000 + i});
      if (i % 250 == 0) {
        ASSERT_EQ(writer->flush(), 0);
      }
    }
    Summary summary;
    summary.faults = 1000;
    summary.samples = 100;
    summary.complete = 1;
    writer->summary(summary);
    ASSERT_EQ(writer->flush(), 0);
  }
  std::string bytes() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void replace(const std::string& bytes) { std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes; }
  static std::uint64_t faults_of(const TraceFile& file) {
    std::uint64_t count = 0;
    file.for_each_fault([&](const FaultRecord&) { ++count; });
    return count;
  }

  std::string folder_, path_;
};

TEST_F(TraceFileTest, GivesBackWhatWasWritten) {
  write();
  Result<TraceFile> file = TraceFile::open(path_);
  ASSERT_TRUE(file) << file.error().what();
  EXPECT_EQ(file->process.program, "subject");
  EXPECT_EQ(file->process.process_id, 42u);
  EXPECT_EQ(file->process.window_base, 1ull << 46);
  EXPECT_EQ(file->process.source, StackSource::kernel_unwound);
  ASSERT_EQ(file->modules.size(), 1u);
  EXPECT_EQ(file->modules[0].build_id, std::string("\0\1\2", 3));
  EXPECT_EQ(file->thread_names.at(7), "worker");
  ASSERT_EQ(file->stacks.size(), 3u);
  EXPECT_EQ(file->stacks[0].addresses, (std::vector<std::uint64_t>{0x1500, 0x1100, 0x7fffffff0000}));
  ASSERT_EQ(file->samples.size(), 100u);
  for (std::uint64_t i = 0; i < 100; ++i) {
    const StackSample& sample = file->samples[i];
    EXPECT_EQ(sample.fault.time_ns, i * 10000);
    EXPECT_EQ(sample.address & 4095, 8u);
    EXPECT_EQ(sample.weight, 10u);
    EXPECT_EQ(sample.latency_ns, 5000 + i * 10);
    EXPECT_EQ(file->stacks[sample.stack].addresses[0], 0x1500 + i * 10 % 3);
  }
  std::uint64_t i = 0;
  file->for_each_fault([&](const FaultRecord& fault) {
    EXPECT_EQ(fault.time_ns, i * 1000);
    EXPECT_EQ(fault.page, (1ull << 34) + (i * 7919) % 5000);
    EXPECT_EQ(fault.thread_id, 7 + i % 3);
    EXPECT_EQ(fault.kind, static_cast<FaultKind>(i % 5));
    EXPECT_EQ(fault.write, i % 2 == 0);
    ++i;
  });
  EXPECT_EQ(i, 1000u);
  EXPECT_EQ(file->summary.complete, 1u);
  EXPECT_EQ(file->damaged_bytes, 0u);
}

TEST_F(TraceFileTest, GivesBackHints) {
  Result<TraceWriter> writer = TraceWriter::create(path_, false);
  ASSERT_TRUE(writer) << writer.error().what();
  ProcessFacts facts;
  facts.program = "hinted";
  writer->process(facts);
  auto hint = [&](std::uint64_t i) {
    return HintRecord{.time_ns = i * 100,
                      .page = 1000 - i,
                      .thread_id = i % 3,
                      .stack = i % 8 == 0 ? writer->stack({{0x100 + i % 16}, false}) : kNoStack,
                      .pages = i,
                      .read_ahead = static_cast<std::int64_t>(i) - 50,
                      .far = i % 5,
                      .far_ahead = i % 7,
                      .parked = i % 2,
                      .write_protect = i % 4,
                      .write = i % 2 == 0,
                      .sequential = i % 3 == 0,
                      .priority = static_cast<std::uint8_t>(i % 4)};
  };
  auto found = [&](std::uint64_t i) {
    return HintFoundRecord{i * 100 + 50, 500 + i % 9, i % 3, i % 2 == 0 ? hint(0).stack : kNoStack};
  };
  for (std::uint64_t i = 0; i < 100; ++i) {
    writer->hint(hint(i));
    writer->hint_found(found(i));
    if (i % 30 == 0) {
      ASSERT_EQ(writer->flush(), 0);
    }
  }
  writer->summary({.hints = 100, .hints_lost = 3, .hints_only_noted = 1});
  Result<TraceFile> file = TraceFile::open(path_);
  ASSERT_TRUE(file) << file.error().what();
  EXPECT_EQ(file->summary.hints, 100u);
  EXPECT_EQ(file->summary.hints_lost, 3u);
  EXPECT_EQ(file->summary.hints_only_noted, 1u);
  ASSERT_EQ(file->stacks.size(), 2u);
  std::uint64_t i = 0;
  file->for_each_hint([&](const HintRecord& read) { EXPECT_EQ(read, hint(i++)); });
  EXPECT_EQ(i, 100u);
  i = 0;
  file->for_each_hint_found([&](const HintFoundRecord& read) { EXPECT_EQ(read, found(i++)); });
  EXPECT_EQ(i, 100u);
}

TEST_F(TraceFileTest, GivesBackAllocations) {
  Result<TraceWriter> writer = TraceWriter::create(path_, false);
  ASSERT_TRUE(writer) << writer.error().what();
  ProcessFacts facts;
  facts.program = "allocating";
  writer->process(facts);
  auto record = [&](std::uint64_t i) {
    AllocationRecord one{.kind = static_cast<AllocationKind>(i % 4),
                         .time_ns = 1'000'000'000 + (i * 7919) % 1000,
                         .address = (1ull << 46) + i % 13 * 100'000,
                         .bytes = i * i,
                         .stands_for = i * i + i % 3 * 262'144};
    if (one.kind == AllocationKind::block_ended) one.made_ns = one.time_ns - i;
    if (one.kind <= AllocationKind::mapping) one.stack = writer->stack({{0x100 + i % 16, 0x200}, false});
    return one;
  };
  for (std::uint64_t i = 0; i < 200; ++i) {
    writer->allocation(record(i));
    if (i % 70 == 0) {
      ASSERT_EQ(writer->flush(), 0);
    }
  }
  writer->summary({.allocations = 200,
                   .allocations_lost = 5,
                   .handler_cost_ns = 2800,
                   .lost_samples_stand_for = 74,
                   .recorder_away_ns = 140'000'000,
                   .faults_by_signal = 1});
  Result<TraceFile> file = TraceFile::open(path_);
  ASSERT_TRUE(file) << file.error().what();
  EXPECT_EQ(file->summary.allocations, 200u);
  EXPECT_EQ(file->summary.allocations_lost, 5u);
  EXPECT_EQ(file->summary.handler_cost_ns, 2800u);
  EXPECT_EQ(file->summary.lost_samples_stand_for, 74u);
  EXPECT_EQ(file->summary.recorder_away_ns, 140'000'000u);
  EXPECT_EQ(file->summary.faults_by_signal, 1u);
  std::uint64_t i = 0;
  file->for_each_allocation([&](const AllocationRecord& read) { EXPECT_EQ(read, record(i++)); });
  EXPECT_EQ(i, 200u);
}

// A file of version 1: no hints, and a shorter summary.
TEST_F(TraceFileTest, ReadsOlderVersions) {
  write();
  std::string older = bytes();
  older[8] = 1;
  BlockHead last{};
  std::size_t at = sizeof(FileHead), start = at;
  for (; at < older.size(); at += sizeof(BlockHead) + last.bytes) {
    std::memcpy(&last, older.data() + at, sizeof last);  // blocks are of any length
    start = at;
  }
  ASSERT_EQ(last.kind, kSummaryBlock);
  ByteWriter summary;
  for (std::uint64_t value : {999'000, 1000, 1, 100, 2, 3, 4000, 5000, 1, 6}) summary.number(value);
  std::string values(summary.view());
  BlockHead head{kSummaryBlock, static_cast<std::uint32_t>(values.size()),
                 checksum_of(kSummaryBlock, values.data(), values.size())};
  replace(older.substr(0, start) + std::string(reinterpret_cast<const char*>(&head), sizeof head) + values);
  Result<TraceFile> file = TraceFile::open(path_);
  ASSERT_TRUE(file) << file.error().what();
  EXPECT_EQ(file->damaged_bytes, 0u);
  EXPECT_EQ(faults_of(*file), 1000u);
  EXPECT_EQ(file->summary.faults_lost, 1u);
  EXPECT_EQ(file->summary.samples_dropped, 6u);
  EXPECT_EQ(file->summary.hints, 0u);
  file->for_each_hint([](const HintRecord&) { FAIL() << "a hint out of nothing"; });
}

TEST_F(TraceFileTest, OverwritesOnlyWhenToldTo) {
  write();
  std::string before = bytes();
  Result<TraceWriter> again = TraceWriter::create(path_, false);
  ASSERT_FALSE(again);
  EXPECT_NE(std::string(again.error().next_step()).find("--force"), std::string::npos);
  EXPECT_EQ(bytes(), before);
  write(true);
  EXPECT_TRUE(TraceFile::open(path_));
}

// Cut at every byte, it opens with fewer and fewer records, or is refused; it never invents one.
TEST_F(TraceFileTest, CutOffAnywhereKeepsWhatIsBefore) {
  write();
  std::string whole = bytes();
  std::uint64_t last = 0;
  for (std::size_t size = 0; size <= whole.size(); size += 41) {
    replace(whole.substr(0, size));
    Result<TraceFile> file = TraceFile::open(path_);
    if (!file) {
      EXPECT_EQ(last, 0u);
      EXPECT_NE(file.error().next_step()[0], '\0');
      continue;
    }
    std::uint64_t faults = faults_of(*file);
    EXPECT_GE(faults, last);
    EXPECT_LE(faults, 1000u);
    last = faults;
  }
  EXPECT_GT(last, 0u);
}

TEST_F(TraceFileTest, StopsAtADamagedBlock) {
  write();
  std::string whole = bytes();
  for (std::size_t at = 16; at < whole.size(); at += 31) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    replace(damaged);
    Result<TraceFile> file = TraceFile::open(path_);
    if (file) {
      EXPECT_GT(file->damaged_bytes, 0u) << at;
    }
  }
}

TEST_F(TraceFileTest, RefusesWhatIsNoTraceAndSaysWhy) {
  struct Case {
    std::string bytes;
    const char* says;
  };
  write();
  std::string newer = bytes();
  newer[8] = static_cast<char>(kTraceVersion + 1);
  for (const Case& each : {Case{"", "is empty"}, Case{"#!/bin/sh\necho no trace at all\n", "is not a trace"},
                           Case{"HL", "is not a trace"}, Case{newer, "newer version"},
                           Case{bytes().substr(0, 16), "before its first record"}}) {
    replace(each.bytes);
    Result<TraceFile> file = TraceFile::open(path_);
    ASSERT_FALSE(file);
    EXPECT_NE(std::string(file.error().what()).find(each.says), std::string::npos) << file.error().what();
    EXPECT_NE(file.error().next_step()[0], '\0');
  }
}

TEST(Bytes, NumbersOfEverySizeComeBack) {
  ByteWriter out;
  std::vector<std::uint64_t> values{0, 1, 127, 128, 1ull << 32, ~0ull, ~0ull >> 1};
  std::uint64_t last = 0;
  for (std::uint64_t value : values) {
    out.number(value);
    out.difference(last, value);
    last = value;
  }
  std::string bytes(out.view());
  ByteReader in({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  last = 0;
  for (std::uint64_t value : values) {
    EXPECT_EQ(in.number(), value);
    last = in.difference(last);
    EXPECT_EQ(last, value);
  }
  EXPECT_TRUE(in.at_end());
  EXPECT_FALSE(in.failed());
  in.number();
  EXPECT_TRUE(in.failed());
}

}  // namespace
}  // namespace hinterland::trace
