// What those who have the key can take of a server: their share and no more, whatever they leave half done; and all
// of it comes back.
#include <gtest/gtest.h>

#include <fstream>

#include "server/arena.hpp"
#include "server/raw_client.hpp"

namespace hinterland::testing {
namespace {

using far::testing::pages_of_slab;
using far::testing::write_pages;

constexpr auto kNoSpace = static_cast<std::uint32_t>(wire::Code::no_space);
constexpr auto kTooMany = static_cast<std::uint32_t>(wire::Code::too_many);

std::uint32_t allocate(RawClient& client, std::uint64_t id, std::uint32_t* slab = nullptr) {
  auto reply = client.ask(make_request(wire::Type::slab_allocate, 0, id));
  if (reply && slab != nullptr) *slab = reply->slab;
  return status_of(reply);
}

std::uint32_t release(RawClient& client, std::uint64_t id, std::uint32_t slab) {
  wire::Header request = make_request(wire::Type::slab_release, 0, id);
  request.slab = slab;
  return status_of(client.ask(request));
}

// A write to the slab's first page, of which half the page comes. Returns when the server has taken the write up.
void begin_write(RawClient& client, std::uint32_t slab) {
  wire::PageNumber page = std::uint64_t{slab} * far::kSlabPages;
  wire::Header request = make_request(wire::Type::write, 1, 900);
  request.stamp = 1u;
  std::vector<std::byte> half(kPageSize / 2, std::byte{1});
  client.send(wire::bytes_of(request));
  client.send(wire::bytes_of(page));
  client.send(half);
}

TEST(ServerShares, AWriteWhosePagesNeverComeCountsAsItsClients) {
  ServerOptions options = small_server(16);
  options.client_memory_bytes = 4 * far::kSlabBytes;
  RunningServer server(options);
  RawClient owner(server->port());
  std::vector<std::unique_ptr<RawClient>> writers;
  std::uint32_t refused = 0;
  std::uint64_t id = 1;
  for (std::uint64_t round = 0; round < 12 && refused == 0; ++round) {
    std::uint32_t slab = 0;
    refused = allocate(owner, ++id, &slab);
    if (refused != 0) break;
    std::uint64_t seen = server->stats().requests;
    writers.push_back(std::make_unique<RawClient>(server->port(), owner.token(), 100 + round));
    begin_write(*writers.back(), slab);
    ASSERT_TRUE(within(kSurelyNs, [&] { return server->stats().requests == seen + 2; }));
    ASSERT_EQ(release(owner, ++id, slab), 0u);
  }
  EXPECT_EQ(refused, kNoSpace);
  EXPECT_EQ(server->stats().slabs_used, 4u) << "its share, and no more";
  writers.clear();
  EXPECT_TRUE(within(kSurelyNs, [&] { return server->stats().slabs_used == 0; }));
  EXPECT_EQ(allocate(owner, ++id), 0u) << "its share is its again";
}

TEST(ServerShares, AnAddressHasAShareOfMemory) {
  ServerOptions options = small_server(8);
  options.address_memory_bytes = 3 * far::kSlabBytes;
  RunningServer server(options);
  RawClient first(server->port()), second(server->port());
  EXPECT_EQ(allocate(first, 1), 0u);
  EXPECT_EQ(allocate(first, 2), 0u);
  EXPECT_EQ(allocate(second, 1), 0u);
  EXPECT_EQ(allocate(second, 2), kNoSpace);
  RawClient elsewhere(server->port(), false, "127.0.0.2");
  elsewhere.join();
  EXPECT_EQ(allocate(elsewhere, 1), 0u);
  EXPECT_EQ(release(first, 3, 0), 0u);
  EXPECT_EQ(allocate(second, 3), 0u);
}

// The answer to a client that wants a session of its own.
std::uint32_t answer_to_open(std::uint16_t port, const char* from = nullptr) {
  RawClient client(port, false, from);
  return client.try_to_join();
}

TEST(ServerShares, AnAddressDoesNotLockOthersOut) {
  ServerOptions options = small_server();
  options.clients_max = 8;
  options.address_clients_max = 4;
  options.address_connections_max = 6;
  RunningServer server(options);
  std::vector<std::unique_ptr<RawClient>> all;
  for (int i = 0; i < 4; ++i) all.push_back(std::make_unique<RawClient>(server->port()));
  EXPECT_EQ(answer_to_open(server->port()), kTooMany);
  for (std::uint64_t i = 0; i < 2; ++i)
    all.push_back(std::make_unique<RawClient>(server->port(), all[0]->token(), 50 + i));
  RawClient seventh(server->port(), false);
  EXPECT_EQ(seventh.try_to_join(all[0]->token(), 60), kTooMany);
  EXPECT_EQ(answer_to_open(server->port(), "127.0.0.2"), 0u);
  all.clear();
  EXPECT_TRUE(within(kSurelyNs, [&] { return server->stats().connections <= 1; }));
}

std::uint64_t resident_bytes(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "RssAnon:" && status >> kib) return kib << 10;
  }
  return 0;
}

TEST(ServerShares, AllMemoryComesBack) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer keeps memory of its own for all that was ever written";
#endif
  constexpr std::uint32_t kSlabs = 12;
  ServerOptions options = small_server(16);
  options.resume_grace_ns = 10'000'000;
  ServerProcess server(options);
  {
    Client first(server.port());
    first.slab();
  }
  std::uint64_t before = resident_bytes(server.pid());
  {
    Client client(server.port());
    for (std::uint32_t i = 0; i < kSlabs; ++i) {
      auto pages = pages_of_slab(client.slab(), 0, far::kSlabPages);
      ASSERT_EQ(write_pages(*client.channel, pages, i), 0);
    }
    EXPECT_GT(resident_bytes(server.pid()), before + kSlabs * far::kSlabBytes / 2);
  }
  // Not one slab stays. (A sanitizer keeps what was freed for a while: some MiB.)
  EXPECT_TRUE(within(kSurelyNs, [&] { return resident_bytes(server.pid()) < before + far::kSlabBytes * 3 / 4; }))
      << resident_bytes(server.pid()) << " bytes, " << before << " before";
}

TEST(ServerShares, ALargeDiscardIsDoneToItsEnd) {
  RunningServer server(small_server());
  RawClient client(server->port());
  std::uint32_t slab = 0;
  ASSERT_EQ(allocate(client, 1, &slab), 0u);
  std::vector<std::byte> body(sizeof(wire::PageNumber) + kPageSize, std::byte{9});
  for (std::uint64_t page : {0u, 1023u, 1024u, 2500u, 4095u}) {
    wire::PageNumber number = page;
    std::memcpy(body.data(), &number, sizeof number);
    wire::Header write = make_request(wire::Type::write, 1, 2);
    write.stamp = 5u;
    ASSERT_EQ(status_of(client.ask(write, body)), 0u);
  }
  std::vector<wire::Run> runs(100, wire::Run{0u, far::kSlabPages, 0u});
  wire::Header discard = make_request(wire::Type::discard, 100, 3);
  discard.stamp = 6u;
  // And another request behind it, which is answered after it.
  client.send(wire::bytes_of(discard));
  client.send(std::as_bytes(std::span(runs)));
  auto ping = client.ask(make_request(wire::Type::ping, 0, 4));
  ASSERT_TRUE(ping);
  EXPECT_EQ(ping->id, 3u);
  wire::Header pong;
  ASSERT_TRUE(client.receive(std::as_writable_bytes(std::span(&pong, 1))));
  EXPECT_EQ(pong.id, 4u);
  EXPECT_GE(server->stats().pages_discarded, 5u);
}

TEST(ServerArena, WipesBesideTheWorkAndGivesNothingUnwiped) {
  auto arena = std::move(*Arena::create(2 * far::kSlabBytes));
  auto account = std::make_shared<SlabAccount>(2, nullptr);
  std::uint32_t first = 0, second = 0, third = 0;
  ASSERT_TRUE(arena->allocate(account, &first) && arena->allocate(account, &second));
  std::memset(arena->page(first, 0), 7, far::kSlabBytes);
  EXPECT_FALSE(arena->allocate(account, &third));
  arena->let_go(first);
  EXPECT_EQ(arena->slabs_used(), 1u);
  EXPECT_EQ(arena->slabs_to_wipe(), 1u);
  EXPECT_EQ(*arena->page(first, 17), std::byte{7}) << "not by the thread that lets go";
  ASSERT_TRUE(arena->allocate(account, &third)) << "what nobody has wiped yet is to be had all the same";
  EXPECT_EQ(third, first);
  EXPECT_EQ(*arena->page(third, 17), std::byte{0});
  std::memset(arena->page(third, 0), 7, far::kSlabBytes);
  arena->let_go(third);
  std::thread wiper([&] { arena->wipe_until_stopped(); });
  EXPECT_TRUE(within(kSurelyNs, [&] { return arena->slabs_to_wipe() == 0; }));
  arena->stop_wiping();
  wiper.join();
  EXPECT_EQ(*arena->page(third, 17), std::byte{0});
}

}  // namespace
}  // namespace hinterland::testing
