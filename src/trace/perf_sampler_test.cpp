#include "trace/perf_sampler.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/units.hpp"

namespace hinterland::trace {
namespace {

constexpr std::size_t kPages = 5600;  // a hundred stacks where few are taken

// The same each time: faults elsewhere, on the records that are drained for example, are not what is counted.
std::uintptr_t fresh_pages() {
  static void* memory =
      mmap(nullptr, bytes_of_pages(kPages), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return reinterpret_cast<std::uintptr_t>(memory);
}

void touch_fresh_pages() {
  auto* memory = reinterpret_cast<char*>(fresh_pages());
  ASSERT_NE(memory, MAP_FAILED);
  madvise(memory, bytes_of_pages(kPages), MADV_NOHUGEPAGE);
  madvise(memory, bytes_of_pages(kPages), MADV_DONTNEED);
  for (std::size_t i = 0; i < kPages; ++i) static_cast<volatile char*>(memory)[bytes_of_pages(i)] = 1;
}

struct Seen {
  std::size_t samples = 0;
  double faults = 0;  // that they stand for
};
Seen seen_by(PerfSampler& sampler) {
  std::vector<PerfRecord> records;
  sampler.drain(records);
  Seen seen;
  for (const PerfRecord& record : records) {
    if (record.kind != PerfRecord::Kind::sample || record.address - fresh_pages() >= bytes_of_pages(kPages)) continue;
    ++seen.samples;
    seen.faults += record.weight;
  }
  return seen;
}

class PerfSamplerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = PerfSampler::open(getpid(), {.stack_bytes = 512, .running = true});
    if (!opened) GTEST_SKIP() << opened.error().what();
    sampler_ = std::move(*opened);
    seen_by(*sampler_);
  }
  std::unique_ptr<PerfSampler> sampler_;
};

TEST_F(PerfSamplerTest, FewerStacksStandForAsManyFaults) {
  for (bool sparsely : {false, true, false}) {
    ASSERT_TRUE(sampler_->sample_sparsely(sparsely));
    seen_by(*sampler_);  // of the test's own faults, before the change
    touch_fresh_pages();
    Seen seen = seen_by(*sampler_);
    double fewer = sparsely ? PerfSampler::kSparseFewer : 1;
    EXPECT_NEAR(seen.faults, kPages, kPages * 0.1) << sparsely;
    EXPECT_NEAR(seen.faults / static_cast<double>(seen.samples), 7.37 * fewer, 0.1) << sparsely;
  }
}

// A sample is worth what it was worth when it was taken, though it is read after the change.
TEST_F(PerfSamplerTest, SamplesFromBeforeAChangeKeepTheirWeight) {
  touch_fresh_pages();
  ASSERT_TRUE(sampler_->sample_sparsely(true));
  touch_fresh_pages();
  EXPECT_NEAR(seen_by(*sampler_).faults, 2 * kPages, kPages * 0.2);
}

TEST_F(PerfSamplerTest, ThreadsDoAsTheirParent) {
  std::thread(touch_fresh_pages).join();  // inherits
  EXPECT_NEAR(seen_by(*sampler_).faults, kPages, kPages * 0.1);
  ASSERT_TRUE(sampler_->sample_sparsely(true));
  std::thread(touch_fresh_pages).join();
  Seen seen = seen_by(*sampler_);
  EXPECT_NEAR(seen.faults, kPages, kPages * 0.1);
  EXPECT_LT(seen.samples, kPages / 30);
}

// Stacks cannot be unwound through files that nobody told of.
TEST_F(PerfSamplerTest, MappingsAreHeardOfWhileFewAreSampled) {
  ASSERT_TRUE(sampler_->sample_sparsely(true));
  int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  void* code = mmap(nullptr, kPageSize, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
  close(file);
  ASSERT_NE(code, MAP_FAILED);
  std::vector<PerfRecord> records;
  sampler_->drain(records);
  EXPECT_TRUE(std::ranges::any_of(records, [&](const PerfRecord& record) {
    return record.kind == PerfRecord::Kind::mapping && record.start == reinterpret_cast<std::uintptr_t>(code);
  }));
  munmap(code, kPageSize);
}

TEST(PerfSampler, EveryFaultStaysEveryFault) {
  auto sampler = PerfSampler::open(getpid(), {.every_fault = true, .stack_bytes = 512, .running = true});
  if (!sampler) GTEST_SKIP() << sampler.error().what();
  seen_by(**sampler);
  EXPECT_FALSE((*sampler)->sample_sparsely(true));
  touch_fresh_pages();
  EXPECT_NEAR(static_cast<double>(seen_by(**sampler).samples), kPages, kPages * 0.05);
}

TEST(PerfSampler, WhatASampleCostsIsMeasuredOnABusyMachine) {
  PerfSampler::Options options = {.every_fault = true, .stack_bytes = 512, .running = true};
  if (auto sampler = PerfSampler::open(getpid(), options); !sampler) GTEST_SKIP() << sampler.error().what();
  std::atomic<bool> done = false;
  std::vector<std::jthread> busy;
  for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i)
    busy.emplace_back([&] {
      while (!done.load(std::memory_order_relaxed)) continue;
    });
  for (int i = 0; i < 40; ++i) {
    std::uint64_t cost = measure_sample_cost_ns(options);
    EXPECT_GT(cost, 50u);
    EXPECT_LT(cost, 50'000u);
  }
  done.store(true, std::memory_order_relaxed);
}

}  // namespace
}  // namespace hinterland::trace
