// Clients for tests of the server: one of the product, and one that speaks the protocol by hand.
#pragma once

#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "far/tcp/socket.hpp"
#include "server/server_test_support.hpp"

namespace hinterland::testing {

namespace wire = far::wire;

inline constexpr std::uint64_t kSurelyNs = 100'000'000'000;  // for what takes milliseconds, on a busy machine

struct Client {
  explicit Client(std::uint16_t port, const far::DeviceSettings& settings = settings_with(""))
      : device(connect_to(port, settings)) {
    if (auto made = device->open_channel()) channel = std::move(*made);
  }
  std::uint32_t slab() {
    auto taken = device->allocate_slab();
    EXPECT_TRUE(taken) << taken.error().what();
    return taken ? *taken : 0;
  }
  std::unique_ptr<far::Device> device;
  std::unique_ptr<far::Channel> channel;
};

// Speaks the protocol by hand, as a bad client would.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port, bool joins = true, const char* from = nullptr) {
    auto endpoints = far::resolve("127.0.0.1", port, false);
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    far::set_stream_options(fd_);
    timeval limit{100, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (from != nullptr) {  // any address of the loopback network
      far::Endpoint own = far::resolve(from, 0, false)->front();
      EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&own.address), own.length), 0);
    }
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&endpoints->front().address), endpoints->front().length), 0);
    if (joins) join();
  }
  // A further connection of a session.
  RawClient(std::uint16_t port, const wire::Token& token, std::uint64_t channel) : RawClient(port, false) {
    session_.token = token;
    session_.channel = channel;
    EXPECT_EQ(shake_hands(wire::Type::session_join), 0u);
  }
  ~RawClient() { ::close(fd_); }
  const wire::Token& token() const { return session_.token; }
  void join() {
    random_token();
    EXPECT_EQ(shake_hands(wire::Type::session_open), 0u);
  }
  // The status of the answer.
  std::uint32_t try_to_join() {
    random_token();
    return shake_hands(wire::Type::session_open);
  }
  std::uint32_t try_to_join(const wire::Token& token, std::uint64_t channel) {
    session_ = {token, channel};
    return shake_hands(wire::Type::session_join);
  }
  void send(std::span<const std::byte> bytes) {
    static_cast<void>(!::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  bool receive(std::span<std::byte> bytes) {
    return ::recv(fd_, bytes.data(), bytes.size(), MSG_WAITALL) == static_cast<ssize_t>(bytes.size());
  }
  // The reply to one request; nothing when the server closed instead.
  std::optional<wire::Header> ask(const wire::Header& request, std::span<const std::byte> body = {}) {
    send(wire::bytes_of(request));
    send(body);
    wire::Header reply;
    if (!receive(std::as_writable_bytes(std::span(&reply, 1)))) return std::nullopt;
    return reply;
  }
  bool closed() {
    std::byte byte;
    return ::recv(fd_, &byte, 1, 0) <= 0;
  }

 private:
  void random_token() {
    std::random_device random;
    for (auto& byte : session_.token) byte = static_cast<unsigned char>(random());
    session_.channel = 1u;
  }
  std::uint32_t shake_hands(wire::Type type) {
    far::SecretKey none;
    wire::ClientHandshake handshake;
    handshake.start(none, type, session_);
    for (wire::Step step = wire::Step::more; step == wire::Step::more;) {
      send(handshake.output());
      handshake.sent(handshake.output().size());
      auto input = handshake.input();
      if (!receive(input)) return 998u;
      step = handshake.received(input.size());
    }
    return static_cast<std::uint32_t>(handshake.refused_session());
  }

  wire::SessionRequest session_{};
  int fd_ = -1;
};

inline std::uint32_t status_of(const std::optional<wire::Header>& reply) {
  return reply ? static_cast<std::uint32_t>(reply->status) : 999u;
}
constexpr auto kNotYours = static_cast<std::uint32_t>(wire::Code::not_yours);

// Takes the session's first slab, and writes its page `page`.
inline void write_first_page(RawClient& client, std::uint64_t page, const PageBuffer& contents) {
  ASSERT_EQ(status_of(client.ask(wire::make_request(wire::Type::slab_allocate, 0, 1))), 0u);
  auto write = wire::make_request(wire::Type::write, 1, 2);
  write.stamp = 1u;
  const wire::PageNumber number{page};
  std::vector<std::byte> body(sizeof number + kPageSize);
  std::memcpy(body.data(), &number, sizeof number);
  std::memcpy(body.data() + sizeof number, contents.bytes.data(), kPageSize);
  ASSERT_EQ(status_of(client.ask(write, body)), 0u);
}

}  // namespace hinterland::testing
