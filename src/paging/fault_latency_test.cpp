// What `fault_latency` counts is what the program's threads wait for: never more than that, although the handler may
// be pushed aside by the thread that it wakes; and all of it where the page has to be fetched first.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <filesystem>
#include <functional>
#include <random>
#include <string>

#include "base/clock.hpp"
#include "base/stats.hpp"
#include "paging/testing/real_pager.hpp"

namespace hinterland::testing {
namespace {

constexpr std::uint32_t kPages = 4096;  // four times the budget
constexpr int kTouches = 600;
constexpr std::uint64_t kComputesNs = 500'000;  // between two of them
constexpr std::uint64_t kDeviceNs = 200'000;

// All of some touches, and what was counted meanwhile.
struct Waiting {
  std::uint64_t touching_ns = 0;  // by the thread's own clock, what it computed in between left out
  std::uint64_t fetched = 0, counted_ns = 0;
};

std::uint64_t fetched() {
  return stat_page()->counters[Counter::faults_read] + stat_page()->counters[Counter::faults_write];
}

// One thread changes scattered pages, and computes after each.
Waiting touch_and_compute(volatile unsigned char* bytes) {
  Waiting waiting;
  LatencyHistogram before, counted;
  before.copy_from(stat_page()->fault_latency);
  std::uint64_t fetched_before = fetched();
  std::mt19937_64 random(5);
  for (int i = 0; i < kTouches; ++i) {
    std::uint64_t begun = now_ns();
    bytes[bytes_of_pages(random() % kPages)] = static_cast<unsigned char>(i);
    std::uint64_t done = now_ns();
    waiting.touching_ns += done - begun;
    while (now_ns() - done < kComputesNs) continue;
  }
  counted.copy_from(stat_page()->fault_latency);
  counted.subtract(before);
  waiting.fetched = fetched() - fetched_before;
  waiting.counted_ns = counted.sum_ns();
  return waiting;
}

// Ties all threads of this process to one CPU: the thread that is woken pushes its handler aside there. The process
// that waits for this one stays free: tied to the same CPU, the kernel's wait4() of it has spun for minutes.
void tie_to_one_cpu() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    sched_setaffinity(std::stoi(task.path().filename()), sizeof one, &one);
}

void run(const RealPagerOptions& options, const std::function<std::string(const Waiting&)>& judge) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  run_with_real_pager(options, [&](Pager& pager) -> std::string {
    tie_to_one_cpu();
    std::intptr_t mapped = pager.map(bytes_of_pages(kPages), kPageSize, PROT_READ | PROT_WRITE);
    if (mapped < 0) return "cannot map";
    auto* bytes = reinterpret_cast<volatile unsigned char*>(mapped);
    for (std::uint32_t page = 0; page < kPages; ++page) bytes[bytes_of_pages(page)] = 1;
    Waiting waiting = touch_and_compute(bytes);
    if (waiting.fetched == 0) return "nothing was fetched";
    if (waiting.counted_ns == 0) return "nothing was counted";
    return judge(waiting);
  });
}

std::string compared(std::uint64_t sum, const char* what, std::uint64_t bound) {
  return std::to_string(sum / 1000) + " us are counted, " + what + ' ' + std::to_string(bound / 1000) + " us";
}

// A bucket's upper edge is an eighth above what is in it, at most.
std::string no_more_than_was_waited(const Waiting& waiting) {
  std::uint64_t most = waiting.touching_ns + waiting.touching_ns / 8;
  return waiting.counted_ns <= most ? "" : compared(waiting.counted_ns, "the thread waited for", most);
}

TEST(FaultLatencyTest, IsNoMoreThanTheThreadWaits) {
  for (const char* far : {"mem:", "zmem:"}) run({.far_url = far}, no_more_than_was_waited);
}

TEST(FaultLatencyTest, HoldsTheDevicesTime) {
  run({.far_url = "sim:latency=200us,inner=mem:"}, [](const Waiting& waiting) {
    std::uint64_t least = waiting.fetched * kDeviceNs;
    if (waiting.counted_ns < least) return compared(waiting.counted_ns, "the device alone took", least);
    return no_more_than_was_waited(waiting);
  });
}

}  // namespace
}  // namespace hinterland::testing
