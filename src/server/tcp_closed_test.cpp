// The tcp: device when the program closes its descriptors by calls that nobody sees, or puts files of its own under
// their numbers: that says nothing of the server. Nothing is lost, no byte is wrong, and nobody waits for ever.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "kernel/kept_file.hpp"
#include "server/server_test_support.hpp"

namespace hinterland::testing {
namespace {

// As a program's own instruction: libc does not see it, nor the thread sanitizer, which would call it a race.
void close_unseen(int descriptor) { ::syscall(SYS_close, descriptor); }

using far::testing::count_wrong;
using far::testing::pages_of_slab;
using far::testing::write_pages;

constexpr std::uint64_t kLongTimeoutNs = 60'000'000'000;

struct Setting {
  Setting() : server(small_server()), device(connect_to(server.port(), settings_with("", kLongTimeoutNs))) {
    channel = std::move(*device->open_channel());
    other = std::move(*device->open_channel());
    pages = pages_of_slab(*device->allocate_slab(), 0, 200);
    EXPECT_EQ(write_pages(*channel, pages, 7), 0);
  }
  std::vector<int> descriptors() const {
    std::array<int, 64> all;
    std::size_t count = device->descriptors(all.data(), all.size());
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  // Each way in which the device uses what it has open.
  void expect_all_well(std::uint64_t id) {
    EXPECT_EQ(count_wrong(*channel, pages, 7), 0);
    EXPECT_EQ(count_wrong(*other, pages, 7), 0);
    std::vector<FarPage> own(pages);
    for (FarPage& page : own) page.value += 1000;
    EXPECT_EQ(write_pages(*other, own, id), 0);
    EXPECT_EQ(count_wrong(*channel, own, id), 0);
    device->discard(own);
    auto slab = device->allocate_slab();
    ASSERT_TRUE(slab) << slab.error().what();
    device->release_slab(*slab);
    EXPECT_EQ(device->lost(), 0);
  }
  ServerProcess server;
  std::unique_ptr<far::Device> device;
  std::unique_ptr<far::Channel> channel, other;
  std::vector<FarPage> pages;
};

TEST(TcpClosed, All) {
  Setting setting;
  for (std::uint64_t round = 0; round < 20; ++round) {
    for (int descriptor : setting.descriptors()) close_unseen(descriptor);
    setting.expect_all_well(round);
  }
}

TEST(TcpClosed, EachAlone) {
  Setting setting;
  for (std::size_t which = 0; which < setting.descriptors().size(); ++which) {
    close_unseen(setting.descriptors()[which]);
    setting.expect_all_well(which);
  }
}

// What asks then is told that it is no socket, no set, no timer. The program's file stays what it is.
TEST(TcpClosed, AFileOfTheProgramsIsThere) {
  Setting setting;
  for (int round = 0; round < 3; ++round) {
    int file = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    std::vector<int> taken = setting.descriptors();
    for (int descriptor : taken) ASSERT_EQ(::dup2(file, descriptor), descriptor);
    setting.expect_all_well(static_cast<std::uint64_t>(round));
    struct stat null, there;
    ASSERT_EQ(::fstat(file, &null), 0);
    for (int descriptor : taken) {
      ASSERT_EQ(::fstat(descriptor, &there), 0) << descriptor;
      EXPECT_EQ(there.st_rdev, null.st_rdev) << descriptor;
      close_unseen(descriptor);
    }
    ::close(file);
  }
}

// At any moment: within a message, while it sleeps, while it connects.
TEST(TcpClosed, InTheMidstOfRequests) {
  Setting setting;
  std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::atomic<bool> ended{false};
  std::atomic<int> closed{0};
  std::thread closer([&] {
    std::mt19937_64 random(seed);
    while (!ended.load()) {
      for (int descriptor : setting.descriptors())
        if (random() % 2 == 0) close_unseen(descriptor);
      ++closed;
      ::usleep(static_cast<useconds_t>(random() % 20'000));
    }
  });
  for (std::uint64_t round = 0; closed.load() < 40; ++round) {
    EXPECT_EQ(count_wrong(*setting.channel, setting.pages, 7), 0);
    EXPECT_EQ(count_wrong(*setting.other, setting.pages, 7), 0);
    auto slab = setting.device->allocate_slab();
    ASSERT_TRUE(slab) << slab.error().what();
    setting.device->release_slab(*slab);
  }
  ended.store(true);
  closer.join();
  setting.expect_all_well(1);
}

// What is opened has a low number for a moment. When the program closes that one, what is under it later is not ours.
TEST(TcpClosed, ALowNumberOnItsWayToAHighOne) {
  constexpr int kFirstHigh = 900, kReconnects = 200, kNumbers = 4;
  Setting setting;
  std::array<int, kNumbers> low;
  for (int& number : low) ASSERT_GE(number = ::open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
  for (int number : low) close_unseen(number);
  std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::jthread closer([&](const std::stop_token& end) {
    std::mt19937_64 random(seed);
    while (!end.stop_requested()) {
      for (int number : low) close_unseen(number);
      ::usleep(static_cast<useconds_t>(random() % 100));
    }
  });
  for (int round = 0; round < kReconnects; ++round) {
    for (int descriptor : setting.descriptors()) close_unseen(descriptor);
    EXPECT_EQ(count_wrong(*setting.channel, setting.pages, 7), 0);
    auto slab = setting.device->allocate_slab();
    ASSERT_TRUE(slab) << slab.error().what();
    setting.device->release_slab(*slab);
    for (int descriptor : setting.descriptors()) ASSERT_GE(descriptor, kFirstHigh) << "in round " << round;
  }
  closer.request_stop();
  closer.join();
  setting.expect_all_well(1);
}

// A channel that is opened takes no number that another one has lost and not missed yet.
TEST(TcpClosed, ThenAChannelIsOpened) {
  Setting setting;
  for (int descriptor : setting.descriptors()) close_unseen(descriptor);
  auto third = std::move(*setting.device->open_channel());
  EXPECT_EQ(count_wrong(*third, setting.pages, 7), 0);
  setting.expect_all_well(1);
  EXPECT_EQ(count_wrong(*third, setting.pages, 7), 0);
}

TEST(TcpClosed, ThenAFork) {
  Setting setting;
  for (int descriptor : setting.descriptors()) close_unseen(descriptor);
  pid_t child = ::fork();
  if (child == 0) {
    if (!setting.device->after_fork_in_child()) ::_exit(2);
    auto channel = setting.device->open_channel();
    if (!channel) ::_exit(3);
    for (int descriptor : setting.descriptors()) close_unseen(descriptor);
    ::_exit(count_wrong(**channel, setting.pages, 7) == 0 && setting.device->lost() == 0 ? 0 : 4);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  setting.expect_all_well(1);
}

// The keeper has a copy of the control connection: the server does not take the client for gone.
TEST(TcpClosed, TheSessionLivesWithoutADescriptor) {
  ServerOptions options = small_server();
  options.resume_grace_ns = 1;
  RunningServer server(options);
  auto kept = connect_to(server->port(), settings_with("", kLongTimeoutNs));
  auto unkept = connect_to(server->port(), settings_with("", kLongTimeoutNs));
  auto channel = std::move(*kept->open_channel());
  std::vector<FarPage> pages = pages_of_slab(*kept->allocate_slab(), 0, 20);
  ASSERT_TRUE(unkept->allocate_slab());
  ASSERT_EQ(write_pages(*channel, pages, 7), 0);
  std::array<int, KeptFile::kMax> files;
  static DescriptorKeeper keeper;  // its thread never ends
  ASSERT_EQ(KeptFile::begin_keeping(keeper, files), 2u);
  static int first;  // the copy of the second device goes with the others, in the thread's table
  first = files[0];
  std::thread([] { static_cast<void>(keeper.hold({&first, 1})); }).detach();
  keeper.wait_until_settled();
  for (auto* device : {kept.get(), unkept.get()}) {
    std::array<int, 64> all;
    std::size_t open = device->descriptors(all.data(), all.size());
    for (std::size_t i = 0; i < open; ++i) close_unseen(all[i]);
  }
  // That session has ended: the server has had the time to end the other one, too.
  EXPECT_TRUE(within(100'000'000'000, [&] { return server->stats().slabs_used == 1; }));
  EXPECT_EQ(count_wrong(*channel, pages, 7), 0);
  EXPECT_EQ(kept->lost(), 0);
}

}  // namespace
}  // namespace hinterland::testing
