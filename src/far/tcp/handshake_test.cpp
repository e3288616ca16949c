#include "far/tcp/handshake.hpp"

#include <gtest/gtest.h>
#include <sodium.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace hinterland::far::wire {
namespace {

SecretKey key_of(const char* text) {
  return SecretKey(std::span(reinterpret_cast<const unsigned char*>(text), std::strlen(text)));
}

class Handshake : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_GE(sodium_init(), 0); }

  // Moves what one side has to say to the other, `piece` bytes at a time. The last step of the other.
  template <typename From, typename To>
  static Step carry(From& from, To& to, std::size_t piece) {
    Step step = Step::more;
    while (!from.output().empty() && step == Step::more) {
      auto input = to.input();
      std::size_t size = std::min({piece, input.size(), from.output().size()});
      if (size == 0) break;
      std::memcpy(input.data(), from.output().data(), size);
      from.sent(size);
      step = to.received(size);
    }
    return step;
  }
  // Both to the point where the client sends its session request. The server's verdict.
  Step meet(const SecretKey& client_key, const SecretKey& server_key, std::size_t piece = 1000) {
    client.start(client_key, Type::session_open, {});
    server.start(server_key);
    server_step = client_step = Step::more;
    for (int i = 0; i < 4 && server_step == Step::more && client_step == Step::more; ++i) {
      server_step = carry(client, server, piece);
      client_step = carry(server, client, piece);
    }
    return server_step;
  }
  ClientHandshake client;
  ServerHandshake server;
  Step server_step = Step::more, client_step = Step::more;
};

TEST_F(Handshake, TheSameKeyOnBothSidesWorksInPiecesOfAnySize) {
  SecretKey one = key_of("the key of both sides"), two = key_of("the key of both sides");
  for (std::size_t piece : {1u, 7u, 1000u}) {
    EXPECT_EQ(meet(one, two, piece), Step::done);
    EXPECT_EQ(client_step, Step::more) << "still waits for its session";
    EXPECT_EQ(client.output().size(), sizeof(Header) + sizeof(SessionRequest));
  }
}

TEST_F(Handshake, NoKeyOnBothSidesWorks) {
  SecretKey none;
  EXPECT_EQ(meet(none, none), Step::done);
  EXPECT_EQ(client_step, Step::more);
}

TEST_F(Handshake, AWrongOrOneSidedKeyFailsOnBothSidesWithItsReason) {
  SecretKey none, one = key_of("the key of one side"), two = key_of("the key of the other");
  EXPECT_EQ(meet(one, two), Step::more) << "the client goes, and has shown nothing";
  EXPECT_EQ(client_step, Step::failed);
  EXPECT_STREQ(client.failure().what, "has another key, or is not your server");
  EXPECT_EQ(meet(none, two), Step::failed);
  EXPECT_STREQ(server.failure(), "has no key");
  EXPECT_STREQ(client.failure().what, "asks for a key, and none was given");
  EXPECT_EQ(meet(one, none), Step::failed);
  EXPECT_EQ(client.failure().code, EACCES);
  EXPECT_STREQ(client.failure().remedy, "start the server with the same --key-file, or leave the key away");
}

// Whoever pretends to be the server must not learn anything with which keys could be tried out.
TEST_F(Handshake, TheServerProvesItselfFirst) {
  SecretKey key = key_of("the key of one side");
  client.start(key, Type::session_open, {});
  std::size_t said = client.output().size();
  client.sent(said);
  EXPECT_EQ(said, sizeof(ClientHello));
  ServerHello hello{};
  hello.magic = kServerMagic;
  hello.version = kVersion;
  hello.flags = kFlagKey;
  std::memcpy(client.input().data(), &hello, sizeof hello);
  ASSERT_EQ(client.received(sizeof hello), Step::more);
  EXPECT_TRUE(client.output().empty()) << "no proof for somebody who has shown none";
  ServerProof proof{};
  std::memcpy(client.input().data(), &proof, sizeof proof);
  EXPECT_EQ(client.received(sizeof proof), Step::failed);
  EXPECT_TRUE(client.output().empty());
  EXPECT_STREQ(client.failure().what, "has another key, or is not your server");
}

// And a server takes nobody who only plays its own proof back, or has another key.
TEST_F(Handshake, TheClientMustProveItselfToo) {
  SecretKey key = key_of("the key of both sides"), other = key_of("the key of another side");
  for (bool back : {false, true}) {
    client.start(key, Type::session_open, {});
    server.start(key);
    carry(client, server, 1000);
    ClientProof proof{};
    ASSERT_EQ(server.output().size(), sizeof(ServerHello) + sizeof(ServerProof));
    if (back) std::memcpy(&proof, server.output().data() + sizeof(ServerHello) + 8, sizeof proof);
    std::memcpy(server.input().data(), &proof, sizeof proof);
    EXPECT_EQ(server.received(sizeof proof), Step::failed);
    EXPECT_STREQ(server.failure(), "has a wrong key");
  }
}

TEST_F(Handshake, AnOldProofIsWorthNothing) {
  SecretKey key = key_of("the key of both sides");
  client.start(key, Type::session_open, {});
  server.start(key);
  std::vector<std::byte> hello(client.output().begin(), client.output().end());
  carry(client, server, 1000);
  carry(server, client, 1000);
  std::vector<std::byte> proof(client.output().begin(), client.output().end());
  ServerHandshake again;
  again.start(key);
  std::memcpy(again.input().data(), hello.data(), hello.size());
  ASSERT_EQ(again.received(hello.size()), Step::more);
  std::memcpy(again.input().data(), proof.data(), again.input().size());
  EXPECT_EQ(again.received(again.input().size()), Step::failed) << "the server's nonce is another";
}

TEST_F(Handshake, TellsAnotherVersionFromAnotherProtocol) {
  SecretKey none;
  client.start(none, Type::session_open, {});
  ServerHello hello{};
  hello.magic = kServerMagic;
  hello.version = 7;
  hello.refusal = static_cast<std::uint32_t>(Refusal::version);
  std::memcpy(client.input().data(), &hello, sizeof hello);
  EXPECT_EQ(client.received(sizeof hello), Step::failed);
  EXPECT_EQ(client.failure().server_version, 7);
  client.start(none, Type::session_open, {});
  std::memcpy(client.input().data(), "HTTP", 4);
  EXPECT_EQ(client.received(4), Step::failed) << "without waiting for the rest";
  EXPECT_EQ(client.failure().server_version, 0);
  EXPECT_STREQ(client.failure().what, "is not a hinterland server: something else answers there");

  server.start(none);
  ClientHello old{};
  old.magic = kClientMagic;
  old.version = 9;
  std::memcpy(server.input().data(), &old, sizeof old);
  EXPECT_EQ(server.received(sizeof old), Step::failed);
  EXPECT_EQ(server.output().size(), sizeof(ServerHello)) << "it says which version it speaks";
  server.start(none);
  std::memcpy(server.input().data(), "GET / HTTP", 10);
  EXPECT_EQ(server.received(10), Step::failed);
  EXPECT_TRUE(server.output().empty()) << "strangers get no answer";
}

}  // namespace
}  // namespace hinterland::far::wire
