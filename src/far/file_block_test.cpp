// file: on a block device: a loop device over a temporary file, where this machine lets us make one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string>

#include "far/file_device.hpp"
#include "far/test_support.hpp"

namespace hinterland::far::testing {
namespace {

struct BlockDevice : ::testing::Test {
  static constexpr std::uint64_t kBytes = 2 * kSlabBytes + kMiB;
  void SetUp() override {
    int control = ::open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control < 0) GTEST_SKIP() << "no permission for loop devices (/dev/loop-control)";
    int number = ioctl(control, LOOP_CTL_GET_FREE);
    close(control);
    if (number < 0) GTEST_SKIP() << "no free loop device";
    path = "/dev/loop" + std::to_string(number);
    loop = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (loop < 0) GTEST_SKIP() << "cannot open " << path;
    backing = ::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    ASSERT_GE(backing, 0);
    ASSERT_EQ(ftruncate(backing, kBytes), 0);
    if (ioctl(loop, LOOP_SET_FD, backing) != 0) GTEST_SKIP() << "cannot set up " << path;
    attached = true;
    loop_info64 info{};
    info.lo_flags = LO_FLAGS_AUTOCLEAR;  // it goes with the last descriptor, also when the test is killed
    ASSERT_EQ(ioctl(loop, LOOP_SET_STATUS64, &info), 0);
  }
  void TearDown() override {
    if (attached) ioctl(loop, LOOP_CLR_FD, 0);
    if (loop >= 0) close(loop);
    if (backing >= 0) close(backing);
  }
  Result<std::unique_ptr<Device>> open(std::uint64_t size = 0) {
    return open_file_device({.path = path, .size_bytes = size, .direct = true, .asynchronous = true});
  }
  std::string path;
  int loop = -1, backing = -1;
  bool attached = false;
};

TEST_F(BlockDevice, IsUsedWholeAndTwiceInTurn) {
  for (std::uint64_t round = 0; round < 2; ++round) {
    auto device = open();
    ASSERT_TRUE(device) << device.error().what();
    EXPECT_EQ((*device)->info().capacity_bytes, 2 * kSlabBytes);
    auto channel = std::move(*(*device)->open_channel());
    auto slab = *(*device)->allocate_slab();
    EXPECT_EQ(write_pages(*channel, pages_of_slab(slab, 0, 64), round), 0);
    EXPECT_EQ(count_wrong(*channel, pages_of_slab(slab, 0, 64), round), 0);
    auto second = open();
    ASSERT_FALSE(second) << "two programs must not share it";
    EXPECT_EQ(second.error().code(), EBUSY);
  }
}

TEST_F(BlockDevice, WithDataThatIsNotOursIsRefusedAndLeftAlone) {
  constexpr char kMark[] = "_BHRfS_M";  // where a file system keeps its mark
  ASSERT_EQ(pwrite(loop, kMark, sizeof kMark, 65600), static_cast<ssize_t>(sizeof kMark));
  ASSERT_EQ(fsync(loop), 0);
  auto device = open();
  ASSERT_FALSE(device);
  EXPECT_NE(std::string(device.error().what()).find("holds data that is not ours"), std::string::npos);
  char kept[sizeof kMark] = {};
  ASSERT_EQ(pread(loop, kept, sizeof kept, 65600), static_cast<ssize_t>(sizeof kept));
  EXPECT_STREQ(kept, kMark);
}

TEST_F(BlockDevice, SmallerThanAskedIsRefused) {
  auto device = open(4 * kSlabBytes);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code(), ENOSPC);
}

}  // namespace
}  // namespace hinterland::far::testing
