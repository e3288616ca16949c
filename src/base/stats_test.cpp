#include "base/stats.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "base/stats_folder.hpp"

namespace hinterland {
namespace {

std::uint64_t counted(const StatPage& page, Counter counter) { return page.counters[counter]; }
std::uint64_t gauge(const StatPage& page, Gauge which) { return page.gauges[static_cast<std::size_t>(which)].load(); }

// Each test runs in a child of its own: the current page is the process's, and cannot be taken back.
int in_child(const std::function<bool()>& body) {
  pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

class StatsTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/hinterland-stats-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    base_ = path;
    directory_ = base_ + "/stats";
    setenv("HINTERLAND_STAT_DIR", directory_.c_str(), 1);
    unsetenv("HINTERLAND_STAT_KEEP");
  }
  void TearDown() override {
    unsetenv("HINTERLAND_STAT_DIR");
    unsetenv("HINTERLAND_STAT_KEEP");
    std::filesystem::remove_all(base_);
  }
  std::string file_of(pid_t pid) const {
    char name[32];
    statistics_file_name(name, sizeof name, pid);
    return directory_ + "/" + name;
  }
  std::string base_, directory_;
};

TEST_F(StatsTest, CountsWhatManyThreadsCountAtOnce) {
  EXPECT_EQ(in_child([] {
              std::vector<std::thread> threads;
              for (int i = 0; i < 12; ++i)  // more than there are columns
                threads.emplace_back([] {
                  for (int j = 0; j < 5000; ++j) count(Counter::pages_in, 2);
                });
              for (std::thread& thread : threads) thread.join();
              if (counted(*stat_page(), Counter::pages_in) != 120'000) return false;
              stat_page()->counters.set(Counter::pages_in, 7);
              return counted(*stat_page(), Counter::pages_in) == 7 && counted(*stat_page(), Counter::pages_out) == 0;
            }),
            0);
}

TEST_F(StatsTest, CarriesOverWhatWasCountedBefore) {
  EXPECT_EQ(in_child([&] {
              count(Counter::faults_read, 3);
              set_gauge(Gauge::budget_bytes, 77);
              stat_page()->fault_latency.add(1000);
              StatPage* before = stat_page();
              if (open_stat_page("/usr/bin/some program") != 0) return false;
              count(Counter::faults_read, 2);
              const StatPage& page = *stat_page();
              return &page != before && counted(page, Counter::faults_read) == 5 &&
                     gauge(page, Gauge::budget_bytes) == 77 && page.fault_latency.count() == 1 &&
                     page.pid == getpid() && page.start_time_ticks == process_start_ticks(getpid()) &&
                     std::string(page.program) == "some program" && page.magic == StatPage::kMagic;
            }),
            0);
}

TEST_F(StatsTest, FileAndDirectoryArePrivateAndNoDescriptorStaysOpen) {
  EXPECT_EQ(in_child([&] {
              int lowest = open("/dev/null", O_RDONLY);
              close(lowest);
              if (open_stat_page("p") != 0) return false;
              int after = open("/dev/null", O_RDONLY);
              struct stat file, directory;
              return after == lowest && stat(file_of(getpid()).c_str(), &file) == 0 &&
                     stat(directory_.c_str(), &directory) == 0 && (file.st_mode & 0777) == 0600 &&
                     (directory.st_mode & 0777) == 0700 && file.st_size >= static_cast<off_t>(sizeof(StatPage));
            }),
            0);
}

TEST_F(StatsTest, AnotherProcessSeesTheFiguresAndTheFileGoesAtTheEnd) {
  EXPECT_EQ(in_child([&] {
              if (open_stat_page("p") != 0) return false;
              count(Counter::pages_in, 9);
              std::string path = file_of(getpid());
              int seen = in_child([&] {
                int file = open(path.c_str(), O_RDONLY);
                auto* page = static_cast<StatPage*>(mmap(nullptr, sizeof(StatPage), PROT_READ, MAP_SHARED, file, 0));
                return counted(*page, Counter::pages_in) == 9 && page->ended_ns == 0;
              });
              close_stat_page();
              return seen == 0 && stat_page()->ended_ns != 0 && access(path.c_str(), F_OK) != 0;
            }),
            0);
}

TEST_F(StatsTest, ForkedChildStartsAtZeroWithItsOwnFile) {
  EXPECT_EQ(in_child([&] {
              if (open_stat_page("parent") != 0) return false;
              count(Counter::pages_out, 4);
              set_gauge(Gauge::resident_bytes, 4096);
              stat_page()->fetch_latency.add(5);
              int child = in_child([&] {
                if (open_stat_page("child") != 0) return false;
                bool fresh = counted(*stat_page(), Counter::pages_out) == 0 &&
                             stat_page()->fetch_latency.count() == 0 &&
                             gauge(*stat_page(), Gauge::resident_bytes) == 4096 && stat_page()->pid == getpid();
                count(Counter::pages_out, 100);
                bool file_there = access(file_of(getpid()).c_str(), F_OK) == 0;
                close_stat_page();
                return fresh && file_there;
              });
              return child == 0 && counted(*stat_page(), Counter::pages_out) == 4 && stat_page()->pid == getpid();
            }),
            0);
}

TEST_F(StatsTest, ForkedChildWithoutAPageLeavesTheParentsFile) {
  EXPECT_EQ(in_child([&] {
              if (open_stat_page("parent") != 0) return false;
              int child = in_child([] {
                close_stat_page();
                return true;
              });
              return child == 0 && stat_page()->ended_ns == 0 && access(file_of(getpid()).c_str(), F_OK) == 0;
            }),
            0);
}

TEST_F(StatsTest, FileOfAnEarlierProgramWithThisPidIsReplaced) {
  EXPECT_EQ(in_child([&] {
              if (open_stat_page("first") != 0) return false;
              StatPage* first = stat_page();
              if (open_stat_page("second") != 0) return false;
              return stat_page() != first && std::string(stat_page()->program) == "second" &&
                     access((file_of(getpid()) + ".1").c_str(), F_OK) != 0;
            }),
            0);
}

TEST_F(StatsTest, KeepRenamesTheEarlierProgramsFileAndLeavesOursAtTheEnd) {
  setenv("HINTERLAND_STAT_KEEP", "1", 1);
  EXPECT_EQ(in_child([&] {
              for (int i = 0; i < 3; ++i)
                if (open_stat_page("program") != 0) return false;
              close_stat_page();
              std::string path = file_of(getpid());
              return access((path + ".1").c_str(), F_OK) == 0 && access((path + ".2").c_str(), F_OK) == 0 &&
                     access(path.c_str(), F_OK) == 0;
            }),
            0);
}

TEST_F(StatsTest, UnwritablePlaceFallsBackToAPrivatePage) {
  setenv("HINTERLAND_STAT_DIR", "/proc/hinterland", 1);
  EXPECT_EQ(in_child([] {
              count(Counter::forks, 1);
              if (open_stat_page("p") >= 0) return false;
              count(Counter::forks, 1);
              return counted(*stat_page(), Counter::forks) == 2;
            }),
            0);
}

TEST_F(StatsTest, ChildThatCannotOpenOneDoesNotCountIntoItsParents) {
  EXPECT_EQ(in_child([&] {
              if (open_stat_page("parent") != 0) return false;
              set_gauge(Gauge::far_bytes, 8);
              int child = in_child([&] {
                // Its environment is not looked at: it may be in far memory. So the directory itself goes bad.
                setenv("HINTERLAND_STAT_DIR", base_.c_str(), 1);
                if (chmod(directory_.c_str(), 0777) != 0 || open_stat_page("child") >= 0) return false;
                count(Counter::pages_in, 7);
                return counted(*stat_page(), Counter::pages_in) == 7 && gauge(*stat_page(), Gauge::far_bytes) == 8;
              });
              return child == 0 && counted(*stat_page(), Counter::pages_in) == 0;
            }),
            0);
}

// `hinterland core` would stop a thread that found no place, and wait for ever for what that thread serves.
TEST_F(StatsTest, EachOfTenRuntimeThreadsIsNamed) {
  EXPECT_EQ(in_child([] {
              if (open_stat_page("p") != 0) return false;
              std::set<std::int32_t> noted, named;
              for (int i = 0; i < 10; ++i) {
                std::thread([&] {
                  note_runtime_thread();
                  noted.insert(gettid());
                }).join();
              }
              for (const auto& thread : stat_page()->inside.runtime_threads)
                if (thread != 0) named.insert(thread);
              return named == noted;
            }),
            0);
}

TEST_F(StatsTest, RefusesADirectoryThatOthersMayWrite) {
  ASSERT_EQ(mkdir(directory_.c_str(), 0700), 0);
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  EXPECT_EQ(in_child([] { return open_stat_page("p") == -EPERM; }), 0);
  if (geteuid() != 0) GTEST_SKIP() << "another user's directory: needs root to make one";
  ASSERT_EQ(chmod(directory_.c_str(), 0700), 0);
  ASSERT_EQ(chown(directory_.c_str(), 12345, 12345), 0);
  EXPECT_EQ(in_child([] { return open_stat_page("p") == -EPERM; }), 0);
}

TEST_F(StatsTest, RefusesASymbolicLink) {
  ASSERT_EQ(symlink("/tmp", directory_.c_str()), 0);
  EXPECT_EQ(in_child([] { return open_stat_page("p") < 0; }), 0);
}

// Process 1 of a PID namespace of its own opens a page. It lives until `until` ends, since the number of a namespace
// is given to another when it is gone.
bool opens_page_as_process_1(int opened, int until) {
  if (unshare(CLONE_NEWPID) != 0) return false;
  return in_child([=] {
           char byte = 0;
           bool done = getpid() == 1 && open_stat_page("first of all") == 0 && write(opened, "", 1) == 1;
           return done && read(until, &byte, 1) == 0;
         }) == 0;
}

// Two containers with one /dev/shm: each has its process 1, and the second made the first's page go.
TEST_F(StatsTest, ProcessesOfTheSameNumberInTwoPidNamespacesKeepTheirPages) {
  if (geteuid() != 0) GTEST_SKIP() << "making a PID namespace needs root";
  int opened[2], until[2];
  ASSERT_EQ(pipe(opened), 0);
  ASSERT_EQ(pipe(until), 0);
  pid_t children[2];
  for (pid_t& child : children) {
    child = fork();
    if (child != 0) continue;
    close(until[1]);
    close(opened[0]);
    _exit(opens_page_as_process_1(opened[1], until[0]) ? 0 : 1);
  }
  close(opened[1]);
  char byte = 0;
  for ([[maybe_unused]] pid_t child : children) EXPECT_EQ(read(opened[0], &byte, 1), 1);
  namespace fs = std::filesystem;
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()), 2);
  close(until[1]);
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  close(until[0]);
  close(opened[0]);
}

TEST_F(StatsTest, TheUsersRuntimeDirectoryIsTakenIfNobodyElseMayUseIt) {
  char path[kStatisticsPathMax];
  unsetenv("HINTERLAND_STAT_DIR");
  setenv("XDG_RUNTIME_DIR", base_.c_str(), 1);
  statistics_directory(path, sizeof path);
  EXPECT_EQ(path, base_ + "/hinterland");
  std::string usual = "/dev/shm/hinterland-" + std::to_string(geteuid());
  ASSERT_EQ(chmod(base_.c_str(), 0750), 0);
  statistics_directory(path, sizeof path);
  EXPECT_EQ(path, usual);
  for (const char* wrong : {"", "relative", "/no/such/place"}) {
    setenv("XDG_RUNTIME_DIR", wrong, 1);
    statistics_directory(path, sizeof path);
    EXPECT_EQ(path, usual) << wrong;
  }
  unsetenv("XDG_RUNTIME_DIR");
}

TEST(StatNames, FollowTheList) {
  EXPECT_STREQ(kCounterNames[static_cast<std::size_t>(Counter::faults_first_touch)].name, "faults_first_touch");
  EXPECT_STREQ(kCounterNames[static_cast<std::size_t>(Counter::forks)].name, "forks");
  EXPECT_STREQ(kGaugeNames[static_cast<std::size_t>(Gauge::device_lost)].name, "device_lost");
  EXPECT_STREQ(kGaugeNames[static_cast<std::size_t>(Gauge::managed)].name, "managed");
  for (const StatName& name : kCounterNames) EXPECT_STRNE(name.help, "");
}

TEST(ProcessStartTicks, TellsProcessesApart) {
  EXPECT_GT(process_start_ticks(getpid()), 0u);
  EXPECT_EQ(process_start_ticks(getpid()), process_start_ticks(getpid()));
  EXPECT_EQ(process_start_ticks(0x7ffffff0), 0u);
}

TEST(LatencyHistogram, EveryValueLiesInItsBucket) {
  std::size_t previous = 0;
  for (std::uint64_t ns = 1; ns < 60'000'000'000u; ns += 1 + ns / 50) {
    std::size_t bucket = LatencyHistogram::bucket_of(ns);
    EXPECT_GE(bucket, previous);
    EXPECT_LT(ns, LatencyHistogram::upper_edge_ns(bucket));
    std::uint64_t lower_ns = bucket > 0 ? LatencyHistogram::upper_edge_ns(bucket - 1) : 0;
    EXPECT_GE(ns, lower_ns);
    previous = bucket;
  }
  EXPECT_EQ(LatencyHistogram::bucket_of(~0ull), LatencyHistogram::kBuckets - 1);
}

TEST(LatencyHistogram, WhatWasAddedSinceAnEarlierCopy) {
  LatencyHistogram now, earlier, other;
  for (int i = 0; i < 10; ++i) now.add(1000);
  earlier.copy_from(now);
  now.add(1'000'000);
  now.subtract(earlier);
  EXPECT_EQ(now.count(), 1u);
  EXPECT_EQ(now.percentile_ns(0.5), LatencyHistogram::upper_edge_ns(LatencyHistogram::bucket_of(1'000'000)));
  other.subtract(earlier);  // another program's, by the same PID: never less than nothing
  EXPECT_EQ(other.count(), 0u);
}

TEST(LatencyHistogram, Percentiles) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.percentile_ns(0.5), 0u);
  for (int i = 0; i < 99; ++i) histogram.add(1000);
  histogram.add(1'000'000);
  EXPECT_EQ(histogram.count(), 100u);
  EXPECT_EQ(histogram.percentile_ns(0.5), LatencyHistogram::upper_edge_ns(LatencyHistogram::bucket_of(1000)));
  EXPECT_EQ(histogram.percentile_ns(0.99), histogram.percentile_ns(0.5));
  EXPECT_EQ(histogram.percentile_ns(1.0), LatencyHistogram::upper_edge_ns(LatencyHistogram::bucket_of(1'000'000)));
  LatencyHistogram sum;
  sum.merge(histogram);
  sum.merge(histogram);
  EXPECT_EQ(sum.count(), 200u);
  sum.clear();
  EXPECT_EQ(sum.count(), 0u);
}

}  // namespace
}  // namespace hinterland
