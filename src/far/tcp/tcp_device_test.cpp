// The tcp: device against servers that lie, fall silent or go away.
#include "far/tcp/tcp_device.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "far/tcp/fake_server.hpp"
#include "far/tcp/on_fake_server.hpp"
#include "far/test_support.hpp"

namespace hinterland::far::testing {
namespace {

// A server that has the CPU now and then answers within the limit. The outcome comes within the limit and a second,
// and on a busy machine when this test has the CPU.
constexpr std::uint64_t kTimeoutNs = 2'000'000'000;
constexpr std::uint64_t kOutcomeNs = kTimeoutNs + 250'000'000'000;

class TcpDeviceTest : public OnFakeServer {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(open_device(kTimeoutNs));
    pages = pages_of_slab(first_slab, 0, 8);
    ASSERT_EQ(write_pages(*channel, pages, 100), 0);
  }
  // Reads the pages; each one's error.
  std::vector<int> read() {
    buffers.assign(pages.size(), PageBuffer());
    std::vector<Request> requests;
    for (std::size_t i = 0; i < pages.size(); ++i) requests.push_back({Operation::read, pages[i], &buffers[i], 0});
    return run_to_end(*channel, requests);
  }
  void expect_right() {
    EXPECT_EQ(read(), std::vector<int>(pages.size(), 0));
    for (std::size_t i = 0; i < pages.size(); ++i) EXPECT_EQ(buffers[i], page_content(100 + i)) << i;
    EXPECT_EQ(device->lost(), 0);
  }
  void expect_lost(int code) {
    std::uint64_t start = now_ns();
    auto errors = read();
    EXPECT_GT(*std::max_element(errors.begin(), errors.end()), 0);
    for (std::size_t i = 0; i < errors.size(); ++i) {
      EXPECT_GE(errors[i], 0) << "never completed";
      if (errors[i] == 0) {
        EXPECT_EQ(buffers[i], page_content(100 + i)) << "what came before the end must be right";
      }
    }
    EXPECT_LT(now_ns() - start, kOutcomeNs);
    EXPECT_EQ(device->lost(), code);
    for (int error : read()) EXPECT_EQ(error, code);
    EXPECT_EQ(channel->in_flight(), 0u);
    EXPECT_FALSE(device->allocate_slab());
  }
  std::vector<FarPage> pages;
  std::vector<PageBuffer> buffers;
};

TEST_F(TcpDeviceTest, OneLieIsForgiven) {
  for (Lie lie : {Lie::rubbish, Lie::wrong_id, Lie::wrong_length, Lie::wrong_pages, Lie::wrong_type, Lie::hang_up,
                  Lie::half_a_reply, Lie::bad_content}) {
    SCOPED_TRACE(static_cast<int>(lie));
    server.lie(lie, 1);
    std::uint64_t start = now_ns();
    expect_right();
    EXPECT_LT(now_ns() - start, kOutcomeNs);
  }
}

// What lands in the buffers of a read that is refused is no part of it, and ends the connection.
TEST_F(TcpDeviceTest, PagesBehindARefusalAreNotTaken) {
  server.lie(Lie::refused, 1);
  const std::vector<int> errors = read();
  EXPECT_NE(errors[0], 0);
  expect_right();
}

// The time limit counts, not how often a connection breaks before the server has answered.
TEST_F(TcpDeviceTest, AConnectionThatBreaksAgainAndAgainIsMadeAgain) {
  for (Lie lie : {Lie::hang_up, Lie::half_a_reply}) {
    SCOPED_TRACE(static_cast<int>(lie));
    const int before = server.connections;
    server.lie(lie, 5);
    expect_right();
    EXPECT_GE(server.connections - before, 5);
  }
}
TEST_F(TcpDeviceTest, AControlConnectionThatBreaksAgainAndAgainIsMadeAgain) {
  server.hang_up_after_allocation = 5;
  EXPECT_TRUE(device->allocate_slab());
  EXPECT_EQ(device->lost(), 0);
}

// What is left of the time then is kRetryNs: on a busy machine the server may not have had the CPU in it.
TEST_F(TcpDeviceTest, OneSilenceIsForgiven) {
  for (int tries = 0; tries < 10; ++tries) {
    server.lie(Lie::silence, 1);
    if (std::vector<int> errors = read(); errors == std::vector<int>(pages.size(), 0)) return expect_right();
    ASSERT_EQ(device->lost(), ETIMEDOUT);
    SetUp();
  }
  FAIL() << "the second attempt never succeeds";
}

TEST_F(TcpDeviceTest, AServerThatKeepsSendingGarbageIsGivenUp) {
  server.lie(Lie::rubbish, 1'000'000);
  expect_lost(EPROTO);
}
TEST_F(TcpDeviceTest, AServerThatAnswersForOtherPagesIsGivenUp) {
  server.lie(Lie::wrong_pages, 1'000'000);
  expect_lost(EPROTO);
}
TEST_F(TcpDeviceTest, AServerThatKeepsHangingUpIsGivenUp) {
  server.lie(Lie::half_a_reply, 1'000'000);
  expect_lost(ECONNRESET);
}
TEST_F(TcpDeviceTest, AServerThatTakesRequestsButNeverAnswersIsGivenUp) {
  server.lie(Lie::silence, 1'000'000);
  expect_lost(ETIMEDOUT);
}
TEST_F(TcpDeviceTest, AServerThatForgotTheSessionIsGivenUp) {
  server.forget_sessions = true;
  server.lie(Lie::hang_up, 1);
  expect_lost(ESTALE);
}

TEST_F(TcpDeviceTest, APageThatStaysWrongIsAnErrorOfThatPageAlone) {
  server.lie(Lie::bad_content, 2);  // the first reading of the message, and the second of its first page
  auto errors = read();
  EXPECT_EQ(errors[0], EBADMSG);
  for (std::size_t i = 1; i < pages.size(); ++i) {
    EXPECT_EQ(errors[i], 0) << i;
    EXPECT_EQ(buffers[i], page_content(100 + i)) << i;
  }
  EXPECT_EQ(device->lost(), 0);
  expect_right();
}

TEST_F(TcpDeviceTest, RepliesMayComeInAnyOrder) {
  std::vector<PageBuffer> some(pages.size());
  for (int round = 0; round < 20; ++round) {
    server.lie(Lie::backwards, static_cast<int>(pages.size()) - 1);  // the last one sends all of them
    // A message each, so that there are replies to swap.
    for (std::size_t i = 0; i < pages.size(); ++i) {
      Request read{Operation::read, pages[i], &some[i], i};
      ASSERT_EQ(channel->submit({&read, 1}), 1);
    }
    std::array<Completion, 16> done;
    std::vector<std::uint64_t> order;
    for (std::uint64_t end = now_ns() + 100'000'000'000; order.size() < pages.size() && now_ns() < end;) {
      int count = channel->poll(done);
      for (int i = 0; i < count; ++i) {
        EXPECT_EQ(done[static_cast<std::size_t>(i)].error, 0);
        order.push_back(done[static_cast<std::size_t>(i)].tag);
      }
      if (count == 0) channel->wait(1'000'000);
    }
    ASSERT_EQ(order.size(), pages.size());
    for (std::size_t i = 0; i < pages.size(); ++i) EXPECT_EQ(some[i], page_content(100 + i)) << i;
    EXPECT_FALSE(std::is_sorted(order.begin(), order.end())) << "the replies were not swapped: nothing was tested";
  }
  EXPECT_EQ(device->lost(), 0);
}

TEST_F(TcpDeviceTest, AServerThatGivesASlabOutTwiceIsGivenUp) {
  server.lie(Lie::same_slab, 0);
  EXPECT_FALSE(device->allocate_slab());
  EXPECT_EQ(device->lost(), EPROTO);
  for (int error : read()) EXPECT_EQ(error, EPROTO);
}

TEST_F(TcpDeviceTest, PagesNeverWrittenOrDiscardedAreErrorsNotZeros) {
  PageBuffer buffer;
  FarPage fresh{pages[0].value + 1000};
  EXPECT_EQ(run_one(*channel, Operation::read, fresh, &buffer), EIO);
  device->discard(std::span(pages).first(1));
  EXPECT_EQ(run_one(*channel, Operation::read, pages[0], &buffer), EIO);
  EXPECT_EQ(run_one(*channel, Operation::read, pages[1], &buffer), 0);
}

// What is given back while the server stands still: all of it is told when it goes on, more than the device keeps as
// requests, too. Nothing that is written meanwhile is given back with it.
TEST_F(TcpDeviceTest, GivingBackDoesNotWaitForTheServer) {
  std::vector<std::uint32_t> slabs;
  for (int i = 0; i < 5; ++i) slabs.push_back(*device->allocate_slab());
  server.hold_give_backs(true);
  std::set<std::uint64_t> given_back;
  for (std::uint32_t slab : slabs)
    for (FarPage page : pages_of_slab(slab, 0, kSlabPages))
      if (page.value % 2 == 0) {  // single pages, of which a request has the fewest
        device->discard({&page, 1});
        given_back.insert(page.value);
      }
  for (int i = 0; i < 2; ++i) device->release_slab(slabs[i]);
  expect_right();  // other connections work on
  std::vector<FarPage> again = pages_of_slab(slabs[4], 0, 8);
  EXPECT_EQ(write_pages(*channel, again, 300), 0);
  EXPECT_EQ(dynamic_cast<TcpDevice&>(*device).reconnects(), 0u) << "it waited until the time limit";

  server.hold_give_backs(false);
  while (device->settle()) ::usleep(1000);
  EXPECT_EQ(device->lost(), 0);
  EXPECT_EQ(server.releases().size(), 2u);
  std::set<std::uint64_t> told = server.discarded();
  for (FarPage page : again) EXPECT_FALSE(told.contains(page.value)) << "it was written since";
  for (FarPage page : again) given_back.erase(page.value);
  // Whether a slab's pages are told before it is released does not matter.
  std::erase_if(given_back,
                [&](std::uint64_t page) { return page / kSlabPages == slabs[0] || page / kSlabPages == slabs[1]; });
  EXPECT_TRUE(std::ranges::includes(told, given_back));
}

TEST_F(TcpDeviceTest, WhatWasGivenBackOverABrokenConnectionIsToldAgainWithItsNumber) {
  std::vector<std::uint32_t> slabs;
  for (int i = 0; i < 3; ++i) slabs.push_back(*device->allocate_slab());
  server.hold_give_backs(true);
  server.hang_up_after_release = 1;
  for (std::uint32_t slab : slabs) device->release_slab(slab);
  server.hold_give_backs(false);
  while (device->settle()) ::usleep(1000);
  EXPECT_EQ(device->lost(), 0);
  std::vector<std::uint64_t> ids = server.releases();
  ASSERT_EQ(ids.size(), 4u);
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_LT(ids[1], ids[2]);
  EXPECT_LT(ids[2], ids[3]);
  EXPECT_TRUE(device->allocate_slab());
}

TEST_F(TcpDeviceTest, ALateTimeLimitIsKeptByTheDescriptorAlone) {
  // One who sleeps on the descriptor, without wait(), must be woken for the time limit.
  server.lie(Lie::silence, 1'000'000);
  PageBuffer buffer;
  Request read{Operation::read, pages[0], &buffer, 1};
  std::uint64_t start = now_ns();
  ASSERT_EQ(channel->submit({&read, 1}), 1);
  std::array<Completion, 1> done;
  int count = 0;
  for (int i = 0; i < 50 && count == 0; ++i) {
    pollfd waiting{channel->event_descriptor(), POLLIN, 0};
    ASSERT_EQ(::poll(&waiting, 1, 60'000), 1);
    count = channel->poll(done);
  }
  ASSERT_EQ(count, 1);
  EXPECT_EQ(done[0].error, ETIMEDOUT);
  EXPECT_LT(now_ns() - start, kOutcomeNs);
}

TEST_F(TcpDeviceTest, ItsDescriptorsAreHighAndStayTheSame) {
  std::array<int, 16> before{}, after{};
  std::size_t count = device->descriptors(before.data(), before.size());
  EXPECT_EQ(count, 5u) << "control, its copy for the keeper (ADR 0056), and socket, epoll, timer of the channel";
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur > 1100) {
    for (std::size_t i = 0; i < count; ++i) EXPECT_GE(before[i], 1000);
  }
  server.lie(Lie::hang_up, 1);
  int connections = server.connections;
  expect_right();
  EXPECT_GT(server.connections, connections) << "it connected anew";
  EXPECT_EQ(device->descriptors(after.data(), after.size()), count);
  EXPECT_EQ(before, after);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(::fcntl(after[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_EQ(device->descriptors(after.data(), 2), 2u);
  channel.reset();
  EXPECT_EQ(device->descriptors(after.data(), after.size()), 2u);
}

TEST(TcpDeviceOpen, SaysWhyItCannot) {
  DeviceSettings settings;
  settings.timeout_ns = kTimeoutNs;
  std::uint16_t port = 0;
  {
    FakeServer gone;
    port = gone.port();
  }
  auto refused = open_tcp_device({"127.0.0.1", port}, settings);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ECONNREFUSED);
  EXPECT_NE(std::string(refused.error().what()).find("127.0.0.1:" + std::to_string(port)), std::string::npos);
  EXPECT_STRNE(refused.error().next_step(), "");
  settings.key_file = "/nonexistent/key";
  auto no_key = open_tcp_device({"127.0.0.1", port}, settings);
  ASSERT_FALSE(no_key);
  EXPECT_NE(std::string(no_key.error().what()).find("/nonexistent/key"), std::string::npos);
}

Endpoint listening(int* listener) {
  Endpoint endpoint = resolve("127.0.0.1", 0, true)->front();
  *listener = ::socket(AF_INET, SOCK_STREAM, 0);
  ::bind(*listener, reinterpret_cast<sockaddr*>(&endpoint.address), endpoint.length);
  ::listen(*listener, 4);
  ::getsockname(*listener, reinterpret_cast<sockaddr*>(&endpoint.address), &endpoint.length);
  return endpoint;
}

// What answers there accepts, and then says `greeting`, or nothing.
std::string complaint_about(const std::string& greeting) {
  int listener = -1;
  Endpoint endpoint = listening(&listener);
  std::atomic<bool> complained{false};
  std::thread other([&] {
    int fd = ::accept(listener, nullptr, nullptr);
    if (::send(fd, greeting.data(), greeting.size(), MSG_NOSIGNAL) < 0) ADD_FAILURE();
    while (!complained) ::usleep(1'000);
    ::close(fd);
  });
  DeviceSettings settings;
  settings.timeout_ns = kTimeoutNs;
  auto device = open_tcp_device({"127.0.0.1", endpoint.port()}, settings);
  complained = true;
  other.join();
  ::close(listener);
  return device ? "none" : device.error().what();
}

TEST(TcpDeviceOpen, TellsStrangersAndTheSilent) {
  EXPECT_NE(complaint_about("SSH-2.0-OpenSSH_9.2\r\n").find("is not a hinterland server"), std::string::npos);
  EXPECT_NE(complaint_about("").find("does not answer"), std::string::npos);
}

void run_on(int cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<unsigned>(cpu), &cpus);
  ASSERT_EQ(sched_setaffinity(0, sizeof cpus, &cpus), 0);
}

// What the server decides by whether it may look for the next request without sleeping.
TEST(TcpSocket, KnowsWhetherThePeerSendsFromThisCpu) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE && cpus.size() < 2; ++cpu)
    if (CPU_ISSET(static_cast<unsigned>(cpu), &allowed)) cpus.push_back(cpu);
  if (cpus.size() < 2) GTEST_SKIP() << "one CPU";
  int listener = -1;
  Endpoint endpoint = listening(&listener);
  int client = ::socket(endpoint.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(start_connect(client, endpoint), 0);
  int server = ::accept(listener, nullptr, nullptr);
  for (int sender : cpus) {
    run_on(sender);
    ASSERT_EQ(::send(client, "x", 1, MSG_NOSIGNAL), 1);
    char byte = 0;
    ASSERT_EQ(::recv(server, &byte, 1, 0), 1);
    for (int receiver : cpus) {
      run_on(receiver);
      EXPECT_EQ(was_received_here(server), sender == receiver) << sender << " to " << receiver;
    }
  }
  sched_setaffinity(0, sizeof allowed, &allowed);
  for (int fd : {client, server, listener}) ::close(fd);
}

}  // namespace
}  // namespace hinterland::far::testing
