// Many come at once: clients, strangers, and both. Who is refused for a moment asks again and comes in; strangers
// cost nobody else his place.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "server/raw_client.hpp"

namespace hinterland::testing {
namespace {

using far::testing::count_wrong;
using far::testing::pages_of_slab;
using far::testing::write_pages;

constexpr std::uint64_t kLongerThanTheTestNs = 3'600'000'000'000;
constexpr const char* kElsewhere = "127.0.0.2";

void at_once(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

TEST(ServerBurst, ClientsThatStartTogetherAllComeIn) {
  ServerOptions options = small_server();
  options.handshakes_max = 1;
  RunningServer server(options);
  std::atomic<int> in{0};
  at_once(60, [&](int) {
    auto device = far::open_tcp_device({"127.0.0.1", server->port()}, settings_with(""));
    EXPECT_TRUE(device) << device.error().what();
    if (device) ++in;
  });
  EXPECT_EQ(in, 60);
}

TEST(ServerBurst, ChannelsThatStartTogetherAllWork) {
  ServerOptions options = small_server();
  options.handshakes_max = 1;
  RunningServer server(options);
  Client first(server->port());
  auto pages = pages_of_slab(first.slab(), 0, 8);
  ASSERT_EQ(write_pages(*first.channel, pages, 1), 0);
  std::atomic<int> right{0};
  at_once(40, [&](int) {
    auto channel = first.device->open_channel();
    ASSERT_TRUE(channel);
    if (count_wrong(**channel, pages, 1) == 0) ++right;
  });
  EXPECT_EQ(right, 40);
  EXPECT_EQ(first.device->lost(), 0);
}

// It opens eight channels, says so, and lives until `until` ends.
[[noreturn]] void open_channels_in_child(far::Device& device, int opened, int until) {
  char byte = 0;
  bool done = device.after_fork_in_child().has_value();
  std::vector<std::unique_ptr<far::Channel>> idle;
  for (int i = 0; i < 8 && done; ++i) idle.push_back(std::move(*device.open_channel()));
  done = done && write(opened, "", 1) == 1 && read(until, &byte, 1) == 0;
  _exit(done ? 0 : 1);
}

TEST(ServerBurst, AForkedChildThatAsksForNothingTakesOneConnection) {
  RunningServer server(small_server());
  Client client(server->port());
  std::uint64_t before = server->stats().connections;
  int opened[2], until[2];
  ASSERT_EQ(pipe2(opened, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(until, O_CLOEXEC), 0);
  pid_t child = fork();
  if (child == 0) {
    close(until[1]);
    open_channels_in_child(*client.device, opened[1], until[0]);
  }
  close(opened[1]);
  char byte = 0;
  EXPECT_EQ(read(opened[0], &byte, 1), 1);
  EXPECT_EQ(server->stats().connections, before + 1);
  for (int end : {until[0], until[1], opened[0]}) close(end);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ServerBurst, WhoFindsNoPlaceWaitsForOne) {
  ServerOptions options = small_server();
  options.clients_max = 1;
  options.client_connections_max = 2;
  RunningServer server(options);
  auto client = std::make_unique<Client>(server->port());
  auto pages = pages_of_slab(client->slab(), 0, 8);
  ASSERT_EQ(write_pages(*client->channel, pages, 1), 0);  // the second and last connection
  std::unique_ptr<far::Channel> third;
  std::thread reader([&] {
    third = std::move(*client->device->open_channel());
    EXPECT_EQ(count_wrong(*third, pages, 1), 0);
  });
  EXPECT_TRUE(within(kSurelyNs, [&] { return server->stats().requests > 5; })) << "it asks again and again";
  client->channel.reset();
  reader.join();
  EXPECT_EQ(client->device->lost(), 0);

  auto refused = far::open_tcp_device({"127.0.0.1", server->port()}, settings_with("", 100'000'000));
  ASSERT_FALSE(refused);
  EXPECT_NE(std::string(refused.error().what()).find("limit of clients or connections"), std::string::npos);
  EXPECT_NE(std::string(refused.error().next_step()).find("--client-connections"), std::string::npos);
  std::thread next([&] { Client second(server->port()); });
  third.reset();
  client.reset();
  next.join();
}

TEST(ServerBurst, ARefusalThatStaysIsFinalAtOnce) {
  TemporaryFile right("the right key of sixteen bytes and more"), wrong("another key of sixteen bytes and more");
  ServerOptions options = small_server();
  options.key_file = right.path();
  RunningServer server(options);
  auto device =
      far::open_tcp_device({"127.0.0.1", server->port()}, settings_with(wrong.path(), kLongerThanTheTestNs));
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code(), EACCES);
}

// A client that has connected and not yet said anything.
class Half {
 public:
  Half(std::uint16_t port, const far::SecretKey& key, const char* from = nullptr)
      : client_(port, false, from), key_(key) {
    static unsigned char name = 0;
    session_.token[0] = ++name;
    handshake_.start(key_, wire::Type::session_open, session_);
  }
  void say_hello() {
    client_.send(handshake_.output());
    handshake_.sent(handshake_.output().size());
    auto input = handshake_.input();
    ASSERT_TRUE(client_.receive(input)) << "pushed out before the hello was answered";
    ASSERT_EQ(handshake_.received(input.size()), wire::Step::more);
  }
  void finish() {
    for (wire::Step step = wire::Step::more; step == wire::Step::more;) {
      client_.send(handshake_.output());
      handshake_.sent(handshake_.output().size());
      auto input = handshake_.input();
      ASSERT_TRUE(client_.receive(input)) << "pushed out";
      step = handshake_.received(input.size());
      ASSERT_NE(step, wire::Step::failed) << handshake_.failure().what;
    }
  }

 private:
  RawClient client_;
  const far::SecretKey& key_;
  wire::SessionRequest session_{};
  wire::ClientHandshake handshake_;
};

class ServerStrangers : public ::testing::Test {
 protected:
  static constexpr int kPlaces = 8;
  ServerStrangers() {
    options.handshakes_max = kPlaces;
    options.handshake_ns = kLongerThanTheTestNs;
    options.key_file = file.path();
    key = std::move(*far::read_key_file(file.path()));
  }
  TemporaryFile file{"a key for tests: 0123456789 abcdefghij"};
  far::SecretKey key;
  ServerOptions options = small_server();
  // Connections that say nothing.
  static std::vector<std::unique_ptr<RawClient>> silent(RunningServer& server, int count, const char* from) {
    std::vector<std::unique_ptr<RawClient>> all;
    for (int i = 0; i < count; ++i) all.push_back(std::make_unique<RawClient>(server->port(), false, from));
    return all;
  }
};

TEST_F(ServerStrangers, PushNobodyOutFromAnotherAddress) {
  RunningServer server(options);
  Half client(server->port(), key), late(server->port(), key);
  client.say_hello();
  auto crowd = silent(server, 40 * kPlaces, kElsewhere);
  // All but so many were turned away, or made room for others of their own.
  EXPECT_TRUE(within(kSurelyNs, [&] { return server->stats().handshakes_refused == 39 * kPlaces; }));
  EXPECT_EQ(server->stats().strangers, kPlaces + 2u);
  client.finish();
  late.finish();
}

TEST_F(ServerStrangers, PushNobodyOutWhoHasProved) {
  RunningServer server(options);
  Client client(server->port(), settings_with(file.path()));
  auto pages = pages_of_slab(client.slab(), 0, 8);
  ASSERT_EQ(write_pages(*client.channel, pages, 1), 0);
  auto crowd = silent(server, 40 * kPlaces, nullptr);
  EXPECT_EQ(count_wrong(*client.channel, pages, 1), 0);
  EXPECT_EQ(static_cast<far::TcpDevice&>(*client.device).reconnects(), 0u);
}

TEST_F(ServerStrangers, WhoHasSaidHelloStaysBeforeThoseWhoSayNothing) {
  RunningServer server(options);
  auto before = silent(server, kPlaces - 1, nullptr);
  Half client(server->port(), key);
  client.say_hello();
  auto crowd = silent(server, 4 * kPlaces, nullptr);
  client.finish();
}

TEST_F(ServerStrangers, AreSoManyASecond) {
  options.handshakes_a_second_max = 1;
  RunningServer server(options);
  silent(server, kPlaces, kElsewhere);  // these have come and gone
  EXPECT_TRUE(within(kSurelyNs, [&] { return server->stats().strangers == 0; }));
  EXPECT_EQ(server->stats().handshakes_refused, 0u);
  auto crowd = silent(server, 2 * kPlaces, kElsewhere);
  EXPECT_TRUE(within(kSurelyNs, [&] { return server->stats().handshakes_refused != 0; })) << "at the door";
  Half elsewhere(server->port(), key);
  elsewhere.say_hello();
  elsewhere.finish();
}

TEST_F(ServerStrangers, WhoProvesTheKeyIsNotCounted) {
  options.handshakes_a_second_max = 1;
  RunningServer server(options);
  for (int i = 0; i < 4 * kPlaces; ++i) {
    auto device = far::open_tcp_device({"127.0.0.1", server->port()}, settings_with(file.path()));
    ASSERT_TRUE(device) << device.error().what();
  }
  EXPECT_EQ(server->stats().handshakes_refused, 0u);
}

TEST_F(ServerStrangers, AFloodFromTheSameAddressKeepsNoClientOut) {
  options.handshakes_max = 64;
  RunningServer server(options);
  Client first(server->port(), settings_with(file.path()));
  auto pages = pages_of_slab(first.slab(), 0, 8);
  ASSERT_EQ(write_pages(*first.channel, pages, 1), 0);
  std::atomic<bool> over{false};
  std::atomic<int> strangers{0};
  std::thread flood([&] {
    far::Endpoint endpoint = far::resolve("127.0.0.1", server->port(), false)->front();
    while (!over) {
      int fd = ::socket(endpoint.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      if (fd < 0) continue;
      if (far::start_connect(fd, endpoint) == 0) ++strangers;
      far::close_at_once(fd);
    }
  });
  EXPECT_TRUE(within(kSurelyNs, [&] { return strangers > 1000; }));
  at_once(8, [&](int) {
    Client client(server->port(), settings_with(file.path()));
    auto channel = first.device->open_channel();
    EXPECT_EQ(count_wrong(**channel, pages, 1), 0);
  });
  over = true;
  flood.join();
  EXPECT_EQ(first.device->lost(), 0);
}

}  // namespace
}  // namespace hinterland::testing
