#include "base/available_memory.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/duration.hpp"
#include "base/units.hpp"

namespace hinterland {
namespace {

class AvailableMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/hinterland-memory-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    root_ = path;
    write("/proc/meminfo", "MemTotal:       2048 kB\nMemFree:   5 kB\nMemAvailable:   1024 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  std::string root_;
};

TEST_F(AvailableMemoryTest, WithoutGroupsItIsTheSystems) {
  AvailableMemory memory = available_memory(root_);
  EXPECT_EQ(memory.bytes(), kMiB);
  EXPECT_EQ(memory.cgroup_version, 0);
}

TEST_F(AvailableMemoryTest, Version2TheTightestOnTheWayToTheRoot) {
  write("/proc/self/cgroup", "0::/a/b\n");
  write("/sys/fs/cgroup/a/memory.max", "524288\n");
  write("/sys/fs/cgroup/a/memory.current", "300000\n");
  write("/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 100000\n");
  write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  AvailableMemory memory = available_memory(root_);
  EXPECT_EQ(memory.cgroup_version, 2);
  EXPECT_EQ(memory.cgroup_limit_bytes, 524288u);
  EXPECT_EQ(memory.bytes(), 324288u);
}

TEST_F(AvailableMemoryTest, Version1) {
  write("/proc/self/cgroup", "5:cpu:/x\n4:memory:/job\n0::/\n");
  write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "65536\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "70000\n");
  AvailableMemory memory = available_memory(root_);
  EXPECT_EQ(memory.cgroup_version, 1);
  EXPECT_EQ(memory.cgroup_limit_bytes, 65536u);
  EXPECT_EQ(memory.bytes(), 0u);
}

TEST_F(AvailableMemoryTest, NonsenseIsNoLimit) {
  write("/proc/self/cgroup", "rubbish\n::\n0:");
  EXPECT_EQ(available_memory(root_).bytes(), kMiB);
  EXPECT_EQ(available_memory(root_ + "/nothing").bytes(), 0u);
}

TEST(Duration, ReadsUnits) {
  EXPECT_EQ(parse_duration_ns("5s"), 5'000'000'000u);
  EXPECT_EQ(parse_duration_ns("5"), 5'000'000'000u);
  EXPECT_EQ(parse_duration_ns("1.5us"), 1500u);
  EXPECT_EQ(parse_duration_ns("250ms"), 250'000'000u);
  EXPECT_EQ(parse_duration_ns("2m"), 120'000'000'000u);
  for (const char* wrong : {"", "s", "-1s", "1x", "1 s ", "nan", "inf", "1e3s", "9999999h"})
    EXPECT_FALSE(parse_duration_ns(wrong)) << wrong;
}

TEST(Duration, Text) {
  EXPECT_EQ(duration_text(0), "0 ns");
  EXPECT_EQ(duration_text(1500), "1.50 us");
  EXPECT_EQ(duration_text(12'340'000), "12.3 ms");
  EXPECT_EQ(duration_text(300'000'000'000), "300 s");
}

}  // namespace
}  // namespace hinterland
