// Regions on devices of their own over the real kernel: beside the program's memory, through fork, and when one of
// the devices is lost or full.
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/stats.hpp"
#include "far/test_support.hpp"
#include "paging/testing/real_pager.hpp"

namespace hinterland::testing {
namespace {

constexpr std::uint32_t kPages = 2048;  // 8 MiB each, over a budget of 4 in all

// Memory whose pages tell what they should hold.
class Area {
 public:
  Area(Pager& pager, std::uintptr_t address) : pager_(&pager), base_(address), versions_(kPages) {}
  static Area of_program(Pager& pager) {
    return {pager, static_cast<std::uintptr_t>(pager.map(bytes_of_pages(kPages), kPageSize, PROT_READ | PROT_WRITE))};
  }
  // On a device of its own; base() is 0 when there is none.
  static Area of_region(Pager& pager, const std::string& url) {
    int pool = 0;
    auto device = pager.open_device(url);
    if (!device) return {pager, 0};
    std::intptr_t address =
        pager.create_region(bytes_of_pages(kPages), {.common_share = true, .device = *device}, &pool);
    return {pager, address < 0 ? 0 : static_cast<std::uintptr_t>(address)};
  }
  std::uintptr_t base() const { return base_; }

  void write(std::uint32_t page, std::uint64_t version) {
    versions_[page] = version;
    for (std::size_t i : kWhere) words(page)[i] = content(page, i);
  }
  bool is_right(std::uint32_t page) const {
    for (std::size_t i : kWhere)
      if (words(page)[i] != content(page, i)) return false;
    return true;
  }
  // A thread's part of the pages: those whose number leaves `rest` when it is divided by four.
  std::string step(std::mt19937_64& random, std::uint32_t rest) {
    std::uint32_t page = static_cast<std::uint32_t>(random() % (kPages / 4)) * 4 + rest;
    switch (random() % 8) {
      case 0:
        pager_->begin_hint({.address = base_ + bytes_of_pages(page), .size = random() % 100'000});
        break;
      case 1:
        pager_->hint({.address = base_ + bytes_of_pages(page), .write = random() % 2 == 0});
        break;
      case 2:
      case 3:
      case 4:
        write(page, random());
        break;
      case 5:
        for (std::uint32_t at = rest; at < 256; at += 4)
          if (!is_right(at)) return "page " + std::to_string(at) + " of a stream";
        break;
      default:
        break;
    }
    return is_right(page) ? "" : "page " + std::to_string(page);
  }
  std::string verify(const char* who) const {
    for (std::uint32_t page = 0; page < kPages; ++page)
      if (!is_right(page)) return std::string(who) + ": page " + std::to_string(page);
    return "";
  }

 private:
  static constexpr std::array<std::size_t, 3> kWhere = {0, 100, 511};
  std::uint64_t content(std::uint32_t page, std::size_t i) const {
    return versions_[page] == 0 ? 0 : (page + 1) * 0x9e3779b97f4a7c15 ^ (versions_[page] + i);
  }
  volatile std::uint64_t* words(std::uint32_t page) const {
    return reinterpret_cast<std::uint64_t*>(base_ + bytes_of_pages(page));
  }

  Pager* pager_;
  std::uintptr_t base_;
  std::vector<std::uint64_t> versions_;  // 0: zeros
};

// Four threads, each with its part of the pages.
std::string work(std::vector<Area>& areas, std::uint64_t for_ns, std::uint64_t seed) {
  std::array<std::string, 4> wrong;
  std::vector<std::thread> threads;
  threads.reserve(wrong.size());
  std::uint64_t end = now_ns() + for_ns;
  for (std::uint32_t number = 0; number < wrong.size(); ++number)
    threads.emplace_back([&, number] {
      std::mt19937_64 random(seed + number);
      while (now_ns() < end && wrong[number].empty())
        wrong[number] = areas[random() % areas.size()].step(random, number);
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& each : wrong)
    if (!each.empty()) return each;
  return "";
}

struct Pair {
  const char* name;
  const char* program;
  const char* region;
  bool faults_by_signal = false;
};
void PrintTo(const Pair& pair, std::ostream* out) { *out << pair.name; }

class PagerDevices : public ::testing::TestWithParam<Pair> {
 protected:
  void SetUp() override {
    if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
    seed_ = far::testing::test_seed();
    std::fprintf(stderr, "HINTERLAND_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed_));
  }
  RealPagerOptions options() const {
    return {.far_url = GetParam().program, .faults_by_signal = GetParam().faults_by_signal};
  }
  std::uint64_t seed_ = 0;
};

// The device comes while four threads are at work on the program's memory, and pages go to both from then on.
TEST_P(PagerDevices, ARegionBesideTheProgramsMemory) {
  run_with_real_pager(options(), [this](Pager& pager) -> std::string {
    std::vector<Area> areas;
    areas.reserve(2);
    areas.push_back(Area::of_program(pager));
    std::string wrong;
    std::thread at_work([&] { wrong = work(areas, 400'000'000, seed_); });
    usleep(100'000);
    Area region = Area::of_region(pager, GetParam().region);
    at_work.join();
    if (!wrong.empty()) return "before: " + wrong;
    if (region.base() == 0) return "no region";
    areas.push_back(std::move(region));
    wrong = work(areas, 1'500'000'000, seed_ + 100);
    for (const Area& each : areas)
      if (wrong.empty()) wrong = each.verify("at the end");
    return wrong.empty() ? audit(pager, true) : wrong;
  });
}

TEST_P(PagerDevices, AForkedChildHasBoth) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer cannot start threads in the child of a process with several threads";
#endif
  run_with_real_pager(options(), [this](Pager& pager) -> std::string {
    std::vector<Area> areas = {Area::of_program(pager), Area::of_region(pager, GetParam().region)};
    if (areas[1].base() == 0) return "no region";
    for (int generation = 1; generation <= 3; ++generation) {
      for (Area& each : areas)
        for (std::uint32_t page = 0; page < kPages; page += static_cast<std::uint32_t>(generation))
          each.write(page, seed_ + static_cast<unsigned>(generation));
      if (int error = pager.before_fork(); error != 0) return "before_fork: " + std::to_string(error);
      pid_t child = fork();
      if (child == 0) {
        pager.after_fork_in_child();
        for (Area& each : areas)
          if (!each.verify("child").empty()) _exit(2);
        for (Area& each : areas)
          for (std::uint32_t page = 0; page < kPages; page += 3) each.write(page, 77);
        Area own = Area::of_region(pager, "zmem:zstd");
        if (own.base() == 0) _exit(3);
        for (std::uint32_t page = 0; page < kPages; ++page) own.write(page, 5);
        for (Area& each : areas)
          if (!each.verify("child").empty()) _exit(4);
        _exit(own.verify("child's own").empty() ? 0 : 5);
      }
      pager.after_fork_in_parent(child > 0);
      int status = 0;
      if (waitpid(child, &status, 0) != child || status != 0) return "the child: " + std::to_string(status);
      for (const Area& each : areas)
        if (std::string wrong = each.verify("parent"); !wrong.empty()) return wrong;
    }
    return audit(pager, false);
  });
}

sigjmp_buf g_out;
void leave(int) { siglongjmp(g_out, 1); }

// 0: right, 1: wrong, 2: SIGBUS.
int look(const Area& area, std::uint32_t page) {
  if (sigsetjmp(g_out, 1) != 0) return 2;
  return area.is_right(page) ? 0 : 1;
}

std::string use_after_loss(Area& program, const Area& region, std::uint64_t seed) {
  struct sigaction action{};
  action.sa_handler = leave;
  sigaction(SIGBUS, &action, nullptr);
  std::array<std::uint32_t, 3> seen{};
  std::mt19937_64 random(seed);
  for (int round = 0; round < 3; ++round)
    for (std::uint32_t page = 0; page < kPages; ++page) {
      ++seen[static_cast<std::size_t>(look(region, page))];
      std::uint32_t other = static_cast<std::uint32_t>(random() % kPages);
      program.write(other, random());
      if (look(program, static_cast<std::uint32_t>(random() % kPages)) != 0)
        return "the program's own memory suffers";
    }
  if (seen[1] != 0) return "a page of the lost device reads as something else";  // I4
  if (seen[2] < kPages) return "too few pages were lost: " + std::to_string(seen[2]);
  if (seen[0] == 0) return "what was local is lost as well";
  if (stat_page()->gauges[static_cast<std::size_t>(Gauge::device_lost)].load() != 1) return "nobody says so";
  return program.verify("the program's own");
}

TEST(PagerDevicesLost, OnlyItsPagesAre) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  run_with_real_pager({}, [](Pager& pager) -> std::string {
    Area program = Area::of_program(pager);
    Area region = Area::of_region(pager, "sim:latency=5us,lose_after=6000,inner=mem:");
    if (region.base() == 0) return "no region";
    for (std::uint32_t page = 0; page < kPages; ++page) region.write(page, 3);
    for (std::uint32_t page = 0; page < kPages; ++page) program.write(page, 4);
    for (int round = 0; round < 4; ++round)  // until it is lost
      for (std::uint32_t page = 0; page < kPages; ++page)
        pager.hint({.address = region.base() + bytes_of_pages(page)});
    return use_after_loss(program, region, 1);
  });
}

// Four times the budget in the program's memory pages on, beside a region that nobody takes any more of.
TEST(PagerDevicesFull, OnlyItsPagesStay) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  run_with_real_pager({.far_url = "zmem:", .budget_bytes = 8 * kMiB}, [](Pager& pager) -> std::string {
    Area program = Area::of_program(pager), more = Area::of_program(pager);
    Area region = Area::of_region(pager, "mem:?size=16M");
    Area another = Area::of_region(pager, "mem:?size=16M");
    Area third = Area::of_region(pager, "mem:?size=16M");  // 24 MiB in 16
    for (std::uint64_t version = 1; version < 4; ++version)
      for (Area* each : {&region, &another, &third, &program, &more})
        for (std::uint32_t page = 0; page < kPages; ++page) each->write(page, version);
    for (const Area* each : {&region, &another, &third, &program, &more})
      if (std::string wrong = each->verify("at the end"); !wrong.empty()) return wrong;
    return audit(pager, true);
  });
}

INSTANTIATE_TEST_SUITE_P(Pairs, PagerDevices,
                         ::testing::Values(Pair{"MemAndSim", "mem:", "sim:latency=20us,inner=mem:"},
                                           Pair{"SimAndZmem", "sim:latency=20us,inner=mem:", "zmem:"},
                                           Pair{"MemAndSimBySignal", "mem:", "sim:latency=20us,inner=mem:", true},
                                           Pair{"ZmemAndFile", "zmem:", "file:/var/tmp/hinterland-test?size=32M"}),
                         [](const auto& pair) { return std::string(pair.param.name); });

}  // namespace
}  // namespace hinterland::testing
