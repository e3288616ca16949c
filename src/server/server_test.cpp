// The server in this process: keys, isolation, limits, memory given back, bad clients.
#include "server/server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "server/raw_client.hpp"

namespace hinterland::testing {
namespace {

using far::testing::count_wrong;
using far::testing::page_content;
using far::testing::pages_of_slab;
using far::testing::run_one;
using far::testing::write_pages;

constexpr std::uint64_t kForAWhileNs = 300'000'000;   // what has not happened by then was not meant to
constexpr std::uint64_t kLongNs = 3'600'000'000'000;  // longer than the test

std::string complaint(std::uint16_t port, const std::string& key_file) {
  auto device = far::open_tcp_device({"127.0.0.1", port}, settings_with(key_file));
  return device ? "" : device.error().what();
}

TEST(ServerKeys, RightWrongAndMissingOnEitherSide) {
  TemporaryFile right("the right key, of thirty-two bytes or more\n"),
      same("the right key, of thirty-two bytes or more"), wrong("another key, of thirty-two bytes or more");
  ServerOptions options = small_server();
  options.key_file = right.path();
  RunningServer with_key(options), without(small_server());
  EXPECT_TRUE(with_key->asks_for_key());
  EXPECT_EQ(complaint(with_key->port(), right.path()), "");
  EXPECT_EQ(complaint(with_key->port(), same.path()), "");
  EXPECT_EQ(complaint(without->port(), ""), "");
  EXPECT_NE(complaint(with_key->port(), wrong.path()).find("has another key"), std::string::npos);
  EXPECT_NE(complaint(with_key->port(), "").find("asks for a key, and none was given"), std::string::npos);
  EXPECT_NE(complaint(without->port(), right.path()).find("has no key, but one was given"), std::string::npos);
  EXPECT_TRUE(within(kSurelyNs, [&] { return with_key->stats().handshakes_refused == 2u; }));
}

TEST(ServerCreate, RefusesWhatCannotWork) {
  ServerOptions options = small_server();
  options.host = "0.0.0.0";
  auto exposed = Server::create(options);
  ASSERT_FALSE(exposed);
  EXPECT_NE(std::string(exposed.error().what()).find("without a key"), std::string::npos);
  EXPECT_NE(std::string(exposed.error().next_step()).find("--insecure"), std::string::npos);
  options.insecure = true;
  EXPECT_TRUE(Server::create(options));
  options.insecure = false;
  TemporaryFile key("the right key, of thirty-two bytes or more");
  options.key_file = key.path();
  EXPECT_TRUE(Server::create(options));

  auto first = Server::create(small_server());
  ASSERT_TRUE(first);
  options = small_server();
  options.port = (*first)->port();
  auto second = Server::create(options);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), EADDRINUSE);
  EXPECT_NE(std::string(second.error().what()).find("127.0.0.1:"), std::string::npos);

  options = small_server();
  options.memory_bytes = far::kSlabBytes - 1;
  EXPECT_FALSE(Server::create(options));
  TemporaryFile open_key("the right key, of thirty-two bytes or more", 0644);
  options = small_server();
  options.key_file = open_key.path();
  EXPECT_FALSE(Server::create(options));
  options = small_server();
  options.host = "host.invalid";
  EXPECT_FALSE(Server::create(options));
}

TEST(ServerIsolation, NobodyReachesAnothersMemory) {
  RunningServer server(small_server());
  Client owner(server->port());
  auto pages = pages_of_slab(owner.slab(), 0, 16);
  ASSERT_EQ(write_pages(*owner.channel, pages, 1), 0);
  RawClient thief(server->port());
  for (std::uint64_t slab = 0; slab < 10; ++slab) {
    wire::PageNumber page = slab * far::kSlabPages;
    EXPECT_EQ(status_of(thief.ask(make_request(wire::Type::read, 1, 5), wire::bytes_of(page))), kNotYours);
    std::vector<std::byte> body(sizeof page + kPageSize, std::byte{0x66});
    std::memcpy(body.data(), &page, sizeof page);
    wire::Header write = make_request(wire::Type::write, 1, 6);
    write.stamp = 1'000'000u;
    EXPECT_EQ(status_of(thief.ask(write, body)), kNotYours);
    wire::Run run{page, far::kSlabPages, 0u};
    wire::Header discard = make_request(wire::Type::discard, 1, 7);
    discard.stamp = 1'000'000u;
    EXPECT_EQ(status_of(thief.ask(discard, wire::bytes_of(run))), kNotYours);
    wire::Header release = make_request(wire::Type::slab_release, 0, 8 + slab);
    release.slab = static_cast<std::uint32_t>(slab);
    EXPECT_EQ(status_of(thief.ask(release)), kNotYours);
  }
  EXPECT_EQ(count_wrong(*owner.channel, pages, 1), 0);
}

TEST(ServerMemory, IsZeroForTheNextClient) {
  RunningServer server(small_server(1));
  {
    Client first(server->port());
    auto all = pages_of_slab(first.slab(), 0, 256);
    ASSERT_EQ(write_pages(*first.channel, all, 4), 0);
  }
  ASSERT_TRUE(within(kSurelyNs, [&] { return server->stats().slabs_used == 0; })) << "left: freed at once";
  RawClient second(server->port());
  ASSERT_EQ(status_of(second.ask(make_request(wire::Type::slab_allocate, 0, 1))), 0u);
  for (std::uint64_t number = 0; number < 256; ++number) {
    wire::PageNumber page = number;
    ASSERT_EQ(status_of(second.ask(make_request(wire::Type::read, 1, 2), wire::bytes_of(page))), 0u);
    std::vector<std::byte> contents(kPageSize);
    ASSERT_TRUE(second.receive(contents));
    ASSERT_EQ(std::count(contents.begin(), contents.end(), std::byte{0}), static_cast<long>(kPageSize)) << number;
  }
}

// Closes without a word, as a killed process does, and returns when the server knows.
void vanish_with_a_slab(RunningServer& server) {
  {
    RawClient vanishing(server->port());
    ASSERT_EQ(status_of(vanishing.ask(make_request(wire::Type::slab_allocate, 0, 1))), 0u);
  }
  EXPECT_TRUE(within(kSurelyNs, [&] { return server->stats().connections == 0; }));
}

TEST(ServerMemory, ComesBackAfterTheGraceWhenAClientVanishes) {
  ServerOptions options = small_server();
  options.resume_grace_ns = 200'000'000;
  RunningServer server(options);
  vanish_with_a_slab(server);
  EXPECT_TRUE(within(kSurelyNs, [&] { return server->stats().slabs_used == 0; }));
  EXPECT_EQ(server->stats().sessions, 0u);
}

TEST(ServerMemory, IsKeptForTheGraceWhenAClientVanishes) {
  ServerOptions options = small_server();
  options.resume_grace_ns = kLongNs;
  RunningServer server(options);
  vanish_with_a_slab(server);
  EXPECT_FALSE(within(kForAWhileNs, [&] { return server->stats().slabs_used == 0; }));
}

// A process names its connections alike in the upper half, and the control connection has 0 in the lower.
class ServerLeaving : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kFirst = std::uint64_t{7} << 32, kSecond = std::uint64_t{9} << 32;
  static ServerOptions patient() {
    ServerOptions options = small_server();
    options.resume_grace_ns = kLongNs;
    return options;
  }
  ServerLeaving() : server(patient()) {
    RawClient opens(server->port());
    token = opens.token();
    // What opened the session goes in order, and only for itself.
    EXPECT_EQ(status_of(opens.ask(make_request(wire::Type::slab_allocate, 0, 1))), 0u);
    open(0, kFirst), open(1, kFirst + 1), open(2, kFirst + 2);
    EXPECT_EQ(status_of(opens.ask(make_request(wire::Type::leave, 0, 2))), 0u);
  }
  void open(std::size_t place, std::uint64_t channel) {
    clients[place] = std::make_unique<RawClient>(server->port(), token, channel);
  }
  void say(std::size_t place, wire::Type type) {
    EXPECT_EQ(status_of(clients[place]->ask(make_request(type, 0, 3))), 0u);
  }
  void close_all() {
    for (auto& client : clients) client.reset();
    EXPECT_TRUE(within(kSurelyNs, [&] { return server->stats().connections == 0; }));
  }
  // The grace is far longer.
  bool becomes_free() {
    return within(kSurelyNs, [&] { return server->stats().slabs_used == 0; });
  }
  bool stays_taken() {
    return !within(kForAWhileNs, [&] { return server->stats().slabs_used == 0; });
  }
  RunningServer server;
  wire::Token token{};
  std::array<std::unique_ptr<RawClient>, 4> clients;
};

TEST_F(ServerLeaving, AProcessThatSaysSoLeavesItsMemoryAtOnce) {
  say(0, wire::Type::leave);
  EXPECT_EQ(server->stats().slabs_used, 1u) << "it is still there";
  close_all();
  EXPECT_TRUE(becomes_free());
}
TEST_F(ServerLeaving, TheWordMayComeAfterOtherConnectionsWent) {
  clients[1].reset(), clients[2].reset();
  EXPECT_TRUE(within(kSurelyNs, [&] { return server->stats().connections == 1; }));
  say(0, wire::Type::leave);
  close_all();
  EXPECT_TRUE(becomes_free());
}
TEST_F(ServerLeaving, AConnectionSpeaksOnlyForItself) {
  say(1, wire::Type::leave);
  close_all();
  EXPECT_TRUE(stays_taken());
}
TEST_F(ServerLeaving, ARequestTakesItBack) {
  say(0, wire::Type::leave);
  say(0, wire::Type::ping);
  close_all();
  EXPECT_TRUE(stays_taken());
}
TEST_F(ServerLeaving, AForkedProcessIsNotSpokenFor) {
  open(3, kSecond);
  say(0, wire::Type::leave);
  close_all();
  EXPECT_TRUE(stays_taken()) << "the second may come back";
}
TEST_F(ServerLeaving, TheLastOfSeveralProcessesFreesTheMemory) {
  open(3, kSecond);
  say(0, wire::Type::leave);
  for (std::size_t place : {0, 1, 2}) clients[place].reset();
  EXPECT_TRUE(stays_taken());
  say(3, wire::Type::leave);
  close_all();
  EXPECT_TRUE(becomes_free());
}

TEST(ServerMemory, AnAnswerThatGotLostIsRepeatedNotRedone) {
  RunningServer server(small_server());
  RawClient client(server->port());
  auto first = client.ask(make_request(wire::Type::slab_allocate, 0, 41));
  auto again = client.ask(make_request(wire::Type::slab_allocate, 0, 41));
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->slab, again->slab);
  EXPECT_EQ(server->stats().slabs_used, 1u);
}

// A client that is in doubt about a connection gives it up and makes another one. The server may read what the first
// one said after it has served the other.
TEST(ServerMemory, AConnectionThatWasGivenUpReplacesNoNewerOne) {
  RunningServer server(small_server());
  RawClient client(server->port());
  RawClient given_up(server->port(), false);
  RawClient newer(server->port(), client.token(), 7);
  EXPECT_EQ(given_up.try_to_join(client.token(), 7), 998u);  // closed without an answer
  EXPECT_EQ(status_of(newer.ask(make_request(wire::Type::ping, 0, 1))), 0u);
  RawClient newest(server->port(), client.token(), 7);
  EXPECT_EQ(status_of(newest.ask(make_request(wire::Type::ping, 0, 1))), 0u);
  EXPECT_TRUE(newer.closed());
}

// Releases are sent without waiting for each one's answer: after a broken connection several come again. By then
// their slabs may have another holder in the session.
TEST(ServerMemory, ReleasesThatAreSentAgainAreNotDoneAgain) {
  RunningServer server(small_server());
  RawClient client(server->port());
  auto release = [](std::uint64_t id, std::uint32_t slab) {
    wire::Header request = make_request(wire::Type::slab_release, 0, id);
    request.slab = slab;
    return request;
  };
  for (std::uint64_t id = 1; id <= 2; ++id) ASSERT_TRUE(client.ask(make_request(wire::Type::slab_allocate, 0, id)));
  for (std::uint32_t slab = 0; slab < 2; ++slab) EXPECT_EQ(client.ask(release(3 + slab, slab))->status, 0u);
  EXPECT_EQ(server->stats().slabs_used, 0u);
  RawClient relative(server->port(), client.token(), 7);
  for (std::uint64_t id = 1; id <= 2; ++id) ASSERT_TRUE(relative.ask(make_request(wire::Type::slab_allocate, 0, id)));
  for (std::uint32_t slab = 0; slab < 2; ++slab) EXPECT_EQ(client.ask(release(3 + slab, slab))->status, 0u);
  EXPECT_EQ(server->stats().slabs_used, 2u);
}

TEST(ServerMemory, StampsKeepOldWritesAndDiscardsOff) {
  RunningServer server(small_server());
  RawClient client(server->port());
  ASSERT_EQ(status_of(client.ask(make_request(wire::Type::slab_allocate, 0, 1))), 0u);
  auto write = [&](std::uint64_t stamp, int value) {
    std::vector<std::byte> body(sizeof(wire::PageNumber) + kPageSize, static_cast<std::byte>(value));
    wire::PageNumber page = 7u;
    std::memcpy(body.data(), &page, sizeof page);
    wire::Header request = make_request(wire::Type::write, 1, stamp);
    request.stamp = stamp;
    EXPECT_EQ(status_of(client.ask(request, body)), 0u);
  };
  auto discard = [&](std::uint64_t stamp) {
    wire::Run run{0u, far::kSlabPages, 0u};
    wire::Header request = make_request(wire::Type::discard, 1, stamp);
    request.stamp = stamp;
    EXPECT_EQ(status_of(client.ask(request, wire::bytes_of(run))), 0u);
  };
  auto value = [&] {
    wire::PageNumber page = 7u;
    EXPECT_EQ(status_of(client.ask(make_request(wire::Type::read, 1, 9), wire::bytes_of(page))), 0u);
    std::vector<std::byte> contents(kPageSize);
    EXPECT_TRUE(client.receive(contents));
    return std::to_integer<int>(contents[100]);
  };
  write(10, 1);
  EXPECT_EQ(value(), 1);
  write(20, 2);
  write(15, 3);  // an older one, late
  EXPECT_EQ(value(), 2);
  write(20, 2);  // the same once more
  discard(18);
  EXPECT_EQ(value(), 2);
  discard(21);
  EXPECT_EQ(value(), 0);
  EXPECT_EQ(server->stats().pages_discarded, 1u);
}

TEST(ServerMemory, DiscardedPagesGoBackToTheKernel) {
  RunningServer server(small_server());
  Client client(server->port());
  auto pages = pages_of_slab(client.slab(), 0, 1024);
  ASSERT_EQ(write_pages(*client.channel, pages, 0), 0);
  client.device->discard(pages);
  while (client.device->settle()) ::usleep(1000);
  EXPECT_EQ(server->stats().pages_discarded, 1024u);
}

TEST(ServerLimits, AClientsShareAndTheWholeAreBoth) {
  ServerOptions options = small_server(3);
  options.client_memory_bytes = 2 * far::kSlabBytes;
  RunningServer server(options);
  Client greedy(server->port()), other(server->port());
  EXPECT_EQ(greedy.device->info().capacity_bytes, 2 * far::kSlabBytes);
  greedy.slab(), greedy.slab();
  auto third = greedy.device->allocate_slab();
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code(), ENOSPC);
  auto pages = pages_of_slab(other.slab(), 0, 16);
  auto beyond = other.device->allocate_slab();
  ASSERT_FALSE(beyond) << "the server is full";
  EXPECT_EQ(beyond.error().code(), ENOSPC);
  EXPECT_EQ(write_pages(*other.channel, pages, 0), 0);
  EXPECT_EQ(count_wrong(*other.channel, pages, 0), 0) << "others are untouched";
  greedy.device->release_slab(1);
  while (greedy.device->settle()) ::usleep(1000);
  EXPECT_EQ(server->stats().slabs_used, 2u);
  other.slab();
}

TEST(ServerLimits, TheSilentAreDroppedAndCannotKeepOthersOut) {
  ServerOptions options = small_server();
  options.handshakes_max = 4;
  options.handshake_ns = 2'000'000'000;
  RunningServer server(options);
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 12; ++i) silent.push_back(std::make_unique<RawClient>(server->port(), false));
  EXPECT_EQ(complaint(server->port(), ""), "") << "the places that strangers hold are given away";
  for (auto& each : silent) EXPECT_TRUE(each->closed());
  EXPECT_EQ(server->stats().handshakes_refused, 12u);
}

TEST(ServerBadClients, AreCutOffAndOthersNotice) {
  RunningServer server(small_server());
  Client good(server->port());
  auto pages = pages_of_slab(good.slab(), 0, 32);
  ASSERT_EQ(write_pages(*good.channel, pages, 3), 0);
  auto cut = [&](const wire::Header& bad) {
    RawClient client(server->port());
    client.send(wire::bytes_of(bad));
    return client.closed();
  };
  wire::Header bad = make_request(wire::Type::read, 1, 1);
  bad.length = UINT32_MAX;
  EXPECT_TRUE(cut(bad)) << "an absurd length";
  bad = make_request(wire::Type::ping, 0, 1), bad.type = 99;
  EXPECT_TRUE(cut(bad)) << "an unknown type";
  {
    RawClient client(server->port());
    client.send(wire::bytes_of(make_request(wire::Type::session_open, 0, 1)));
    client.send(wire::bytes_of(wire::SessionRequest{}));
    EXPECT_TRUE(client.closed()) << "a second session on one connection";
  }
  {
    RawClient client(server->port());
    wire::PageNumber page = wire::kPageNumbers;
    client.send(wire::bytes_of(make_request(wire::Type::read, 1, 1)));
    client.send(wire::bytes_of(page));
    EXPECT_TRUE(client.closed()) << "a page beyond all slabs";
  }
  RawClient stranger(server->port(), false);
  stranger.send(std::as_bytes(std::span("GET / HTTP/1.1\r\n\r\n", 18)));
  EXPECT_TRUE(stranger.closed());
  std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    RawClient client(server->port(), round % 2 == 0);
    std::vector<std::byte> bytes(1 + random() % 5000);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    client.send(bytes);
  }
  EXPECT_EQ(status_of(RawClient(server->port()).ask(make_request(wire::Type::ping, 0, 8))), 0u);
  EXPECT_EQ(count_wrong(*good.channel, pages, 3), 0);
}

// A client that asks and never reads must not cost the server more than its bound, nor hold up anybody.
TEST(ServerBadClients, WhoDoesNotReadIsNotReadFrom) {
  RunningServer server(small_server());
  RawClient deaf(server->port());
  ASSERT_EQ(status_of(deaf.ask(make_request(wire::Type::slab_allocate, 0, 1))), 0u);
  std::vector<std::byte> request(sizeof(wire::Header) + 64 * sizeof(wire::PageNumber));
  wire::Header header = make_request(wire::Type::read, 64, 2);
  std::memcpy(request.data(), &header, sizeof header);
  for (int i = 0; i < 200; ++i) deaf.send(request);  // 50 MiB of replies
  std::uint64_t pages = 0;
  within(300'000'000, [&] { return std::exchange(pages, server->stats().pages_read) == 200 * 64; });
  EXPECT_LT(server->stats().pages_read, 200u * 64) << "sockets hold a few MiB at most";
  Client other(server->port());
  auto mine = pages_of_slab(other.slab(), 0, 64);
  EXPECT_EQ(write_pages(*other.channel, mine, 5), 0);
  EXPECT_EQ(count_wrong(*other.channel, mine, 5), 0);
}

TEST(ServerLife, StopEndsRunEvenBeforeItBegan) {
  auto server = Server::create(small_server());
  ASSERT_TRUE(server);
  (*server)->stop();
  EXPECT_TRUE((*server)->run());
}

TEST(ServerLife, AnIdleServerUsesNoProcessor) {
  RunningServer server(small_server());
  Client client(server->port());
  auto pages = pages_of_slab(client.slab(), 0, 64);
  ASSERT_EQ(write_pages(*client.channel, pages, 0), 0);
  auto used_us = [] {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * 1'000'000 + used.tv_nsec / 1000;
  };
  long least_us = 1'000'000;  // on a busy machine it is still at work in the first rounds
  for (int round = 0; round < 20 && least_us >= 5000; ++round) {
    long before_us = used_us();
    ::usleep(500'000);
    least_us = std::min(least_us, used_us() - before_us);
  }
  EXPECT_LT(least_us, 5000) << "of half a second";
}

}  // namespace
}  // namespace hinterland::testing
