// What is particular to file: whose file it may take, what it leaves behind, and failures of the disk below.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "far/file_device.hpp"
#include "far/test_support.hpp"

namespace hinterland::far::testing {
namespace {

struct File : ::testing::Test {
  void SetUp() override {
    std::string name = "/tmp/hinterland-file-test-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory = name;
    path = name + "/far";
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  Result<std::unique_ptr<Device>> open(std::uint64_t size = 2 * kSlabBytes, bool asynchronous = true) {
    return open_file_device({.path = path, .size_bytes = size, .direct = true, .asynchronous = asynchronous});
  }
  void expect_refused(const Result<std::unique_ptr<Device>>& device, const char* what) {
    ASSERT_FALSE(device);
    EXPECT_NE(std::string(device.error().what()).find(what), std::string::npos) << device.error().what();
    EXPECT_STRNE(device.error().next_step(), "");
  }
  bool nothing_left() { return std::filesystem::is_empty(directory); }

  // The descriptor of the unlinked file, as a broken disk would get at it.
  int device_descriptor() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;
      if (std::filesystem::read_symlink(entry.path(), ignored).string() == path + " (deleted)")
        return std::stoi(entry.path().filename());
    }
    return -1;
  }
  std::filesystem::path directory;
  std::string path;
};

TEST_F(File, LeavesNothingBehindEvenWhileItIsOpen) {
  auto device = open();
  ASSERT_TRUE(device) << device.error().what();
  EXPECT_TRUE(nothing_left());
  EXPECT_EQ((*device)->info().capacity_bytes, 2 * kSlabBytes);
}

TEST_F(File, ReservesItsSpace) {
  auto device = open();
  ASSERT_TRUE(device) << device.error().what();
  struct stat found{};
  ASSERT_EQ(fstat(device_descriptor(), &found), 0);
  EXPECT_GE(static_cast<std::uint64_t>(found.st_blocks) * 512, 2 * kSlabBytes);
  EXPECT_EQ(found.st_mode & 0777, 0600u) << "nobody else may read the program's memory";
}

TEST_F(File, RefusesWhatIsNotOurs) {
  std::ofstream(path) << "somebody's data";
  expect_refused(open(), "exists and is not ours");
  std::ifstream again(path);
  std::string kept((std::istreambuf_iterator<char>(again)), {});
  EXPECT_EQ(kept, "somebody's data");
  std::filesystem::remove(path);
  std::ofstream{path};  // empty
  expect_refused(open(), "exists and is not ours");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  expect_refused(open(), "is a directory");
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/etc/passwd", path);
  expect_refused(open(), "is a symbolic link");
  std::filesystem::remove(path);
  std::filesystem::create_symlink(directory / "nowhere", path);
  expect_refused(open(), "not ours");
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  expect_refused(open(), "not ours");
}

TEST_F(File, TakesOverWhatAKilledProcessOfOursLeft) {
  std::string header = "hinterland far memory file v1\n";
  header.resize(4096);
  std::ofstream(path) << header;
  auto device = open();
  ASSERT_TRUE(device) << device.error().what();
  EXPECT_TRUE(nothing_left());
}

TEST_F(File, RefusesPlacesThatCannotBe) {
  path = (directory / "no" / "such" / "far").string();
  expect_refused(open(), "cannot create");
  path = (directory / "far").string();
  if (geteuid() == 0) {
    path = "/proc/far";
    expect_refused(open(), "cannot");
  } else {
    std::filesystem::permissions(directory, std::filesystem::perms::owner_read);
    expect_refused(open(), "cannot open");
    std::filesystem::permissions(directory, std::filesystem::perms::owner_all);
  }
}

TEST_F(File, AFullDiskIsSaidInBytes) {
  auto device = open(std::uint64_t{100} << 40);
  expect_refused(device, "bytes are missing");
  EXPECT_EQ(device.error().code(), ENOSPC);
  EXPECT_TRUE(nothing_left());
}

TEST_F(File, TheFileSizeLimitIsSaidAndRaisesNoSignal) {
  pid_t child = fork();
  if (child == 0) {
    rlimit limit{kSlabBytes, kSlabBytes};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto device = open();
    _exit(!device && device.error().code() == EFBIG ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(nothing_left());
}

// Contexts of the size that channels ask for are refused to this process from now on, as on a machine that has none
// left.
void refuse_contexts() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_setup, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 1, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{std::size(program), program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    _exit(9);
}

TEST_F(File, WorksOnWhenTheMachineHasNoContextLeft) {
  pid_t child = fork();
  if (child == 0) {
    auto device = open();
    if (!device || (*device)->info().synchronous) _exit(2);
    refuse_contexts();
    auto channel = (*device)->open_channel();
    if (!channel) _exit(3);
    auto pages = pages_of_slab(*(*device)->allocate_slab(), 0, 40);
    if (write_pages(**channel, pages, 7) != 0) _exit(4);
    if (count_wrong(**channel, pages, 7) != 0) _exit(5);
    PageBuffer buffer;
    Request request{Operation::read, pages[0], &buffer, 0};
    if ((*channel)->submit(std::span(&request, 1)) != 1) _exit(6);
    pollfd wait{(*channel)->event_descriptor(), POLLIN, 0};
    _exit(poll(&wait, 1, 0) == 1 ? 0 : 7);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) GTEST_SKIP() << "no Linux AIO here";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Both kinds of channel on a disk that goes wrong.
struct BrokenFile : File, ::testing::WithParamInterface<bool> {
  void SetUp() override {
    File::SetUp();
    auto opened = open(2 * kSlabBytes, GetParam());
    ASSERT_TRUE(opened) << opened.error().what();
    device = std::move(*opened);
    if (GetParam() && device->info().synchronous) GTEST_SKIP() << "no Linux AIO here";
    channel = std::move(*device->open_channel());
    slab = *device->allocate_slab();
    pages = pages_of_slab(slab, 0, 40);
    ASSERT_EQ(write_pages(*channel, pages, 0), 0);
  }
  void TearDown() override {
    channel.reset();
    device.reset();
    File::TearDown();
  }
  std::vector<int> read_all() {
    std::vector<Request> requests;
    for (std::size_t i = 0; i < pages.size(); ++i) requests.push_back({Operation::read, pages[i], &buffers[i], 0});
    return run_to_end(*channel, requests);
  }
  std::unique_ptr<Device> device;
  std::unique_ptr<Channel> channel;
  std::uint32_t slab = 0;
  std::vector<FarPage> pages;
  std::vector<PageBuffer> buffers{40};
};

TEST_P(BrokenFile, ADamagedPageIsFoundAndItsNeighboursAreNot) {
  PageBuffer damage = page_content(12345);
  auto offset = static_cast<off_t>(FileTarget::kHeaderBytes + bytes_of_pages(pages[5].value));
  ASSERT_EQ(pwrite(device_descriptor(), &damage, kPageSize, offset), static_cast<ssize_t>(kPageSize));
  auto errors = read_all();
  for (std::size_t i = 0; i < pages.size(); ++i) EXPECT_EQ(errors[i], i == 5 ? EBADMSG : 0) << i;
}

TEST_P(BrokenFile, AShortReadIsAnErrorOfThePagesItLacks) {
  ASSERT_EQ(ftruncate(device_descriptor(), static_cast<off_t>(FileTarget::kHeaderBytes + bytes_of_pages(10))), 0);
  auto errors = read_all();
  for (std::size_t i = 0; i < pages.size(); ++i) EXPECT_EQ(errors[i], i < 10 ? 0 : EIO) << i;
}

TEST_P(BrokenFile, AFailedDescriptorIsAnErrorOfEveryPage) {
  int fd = device_descriptor();
  int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(dup3(null, fd, O_CLOEXEC), 0);  // reads fail with EBADF
  close(null);
  for (int error : read_all()) EXPECT_EQ(error, EBADF);
}

TEST_P(BrokenFile, AFullChannelOfWritesThatFailIsAnErrorOfEachPage) {
  // Transfers of several pages are split into single ones when they fail: all of a full channel at the same time.
  int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(dup3(null, device_descriptor(), O_CLOEXEC), 0);  // writes fail with EBADF
  close(null);
  auto many = pages_of_slab(slab, 100, device->info().in_flight_max);
  std::vector<Request> requests;
  for (std::size_t i = 0; i < many.size(); ++i) requests.push_back({Operation::write, many[i], &buffers[i % 40], 0});
  for (int round = 0; round < 10; ++round)
    EXPECT_EQ(run_to_end(*channel, requests), std::vector<int>(many.size(), EBADF));
  for (FarPage page : many)
    EXPECT_EQ(run_one(*channel, Operation::read, page, &buffers[0]), ENODATA) << "never written";
}

TEST_P(BrokenFile, APageNeverWrittenIsAnErrorNotZeros) {
  EXPECT_EQ(run_one(*channel, Operation::read, pages_of_slab(slab, 500, 1)[0], &buffers[0]), ENODATA);
}

TEST_P(BrokenFile, ChannelsEndWithTransfersInFlight) {
  for (int round = 0; round < 20; ++round) {
    auto other = std::move(*device->open_channel());
    std::vector<Request> requests;
    for (std::size_t i = 0; i < pages.size(); ++i) requests.push_back({Operation::read, pages[i], &buffers[i], i});
    ASSERT_EQ(other->submit(requests), 40);
    other.reset();  // after this nothing may write into the buffers: the sanitizers watch
  }
  EXPECT_EQ(count_wrong(*channel, pages, 0), 0);
}

std::string kind_name(const ::testing::TestParamInfo<bool>& info) { return info.param ? "asynchronous" : "blocking"; }
INSTANTIATE_TEST_SUITE_P(Channels, BrokenFile, ::testing::Bool(), kind_name);

}  // namespace
}  // namespace hinterland::far::testing
