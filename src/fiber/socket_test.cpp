// Sockets between fibers, and between a fiber and a thread.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

#include "hinterland/fiber.hpp"

namespace {

using namespace hl::fibers;
using namespace std::chrono_literals;

void echo(stream_socket& peer) {
  char buffer[4096];
  for (std::ptrdiff_t got; (got = peer.read(buffer, sizeof buffer)) > 0;)
    if (peer.write_all(buffer, static_cast<std::size_t>(got)) < 0) return;
}

void ask(std::uint16_t port, int rounds) {
  stream_socket server = stream_socket::connect("127.0.0.1", port);
  for (int i = 0; i < rounds; ++i) {
    char question[64], answer[64];
    int length = snprintf(question, sizeof question, "question %d", i);
    ASSERT_EQ(server.write_all(question, static_cast<std::size_t>(length)), length);
    for (std::ptrdiff_t got = 0; got < length;) {
      std::ptrdiff_t more = server.read(answer + got, sizeof answer - static_cast<std::size_t>(got));
      ASSERT_GT(more, 0);
      got += more;
    }
    ASSERT_EQ(std::memcmp(question, answer, static_cast<std::size_t>(length)), 0);
  }
}

TEST(FiberSockets, ServeManyConnections) {
  for (unsigned workers : {1u, 3u}) {
    run({.workers = workers}, [] {
      stream_socket listener = stream_socket::listen("127.0.0.1", 0);
      fiber server([&] {
        while (true) {
          stream_socket peer = listener.accept();
          if (!peer.is_open()) return;
          fiber([peer = std::move(peer)]() mutable { echo(peer); }).detach();
        }
      });
      parallel_for(0, 50, [&](std::size_t) { ask(listener.port(), 20); });
      listener.shutdown();
      server.join();
    });
  }
}

TEST(FiberSockets, ServeOrdinaryThreads) {
  stream_socket listener = stream_socket::listen("::1", 0);
  std::thread client([&] {
    stream_socket server = stream_socket::connect("::1", listener.port());  // a thread: blocks
    char byte = 'x';
    EXPECT_EQ(server.write(&byte, 1), 1);
    EXPECT_EQ(server.read(&byte, 1), 1);
    EXPECT_EQ(byte, 'x');
  });
  run({.workers = 2}, [&] {
    stream_socket peer = listener.accept();
    echo(peer);
  });
  client.join();
  // The same stream_socket in a second run, whose poller is another one.
  std::thread again([&] { stream_socket::connect("::1", listener.port()); });
  run({.workers = 2}, [&] { EXPECT_TRUE(listener.accept().is_open()); });
  again.join();
}

TEST(FiberSockets, LargeTransfersWaitForRoom) {
  run({.workers = 2}, [] {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    stream_socket left(ends[0]), right(ends[1]);
    std::vector<unsigned char> sent(8 << 20), received;
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<unsigned char>(i * 31 >> 8 ^ i);
    fiber writer([&] {
      EXPECT_EQ(left.write_all(sent.data(), sent.size()), static_cast<std::ptrdiff_t>(sent.size()));
      left.close();
    });
    std::vector<unsigned char> buffer(64 << 10);
    for (std::ptrdiff_t got; (got = right.read(buffer.data(), buffer.size())) > 0;)
      received.insert(received.end(), buffer.begin(), buffer.begin() + got);
    writer.join();
    EXPECT_TRUE(sent == received);
  });
}

TEST(FiberSockets, FailuresAreValues) {
  run({.workers = 1}, [] {
    stream_socket closed;
    char byte = 0;
    int error = 0;
    EXPECT_EQ(closed.read(&byte, 1), -EBADF);
    EXPECT_EQ(closed.write(&byte, 1), -EBADF);
    EXPECT_FALSE(closed.accept(&error).is_open());
    EXPECT_EQ(error, EBADF);
    EXPECT_EQ(closed.descriptor(), -1);

    EXPECT_THROW(stream_socket::listen("nowhere", 1), std::system_error);
    stream_socket listener = stream_socket::listen("127.0.0.1", 0);
    EXPECT_THROW(stream_socket::listen("127.0.0.1", listener.port()), std::system_error);
    std::uint16_t port = listener.port();
    listener.close();
    try {
      stream_socket::connect("127.0.0.1", port);
      ADD_FAILURE() << "connected to nobody";
    } catch (const std::system_error& refused) {
      EXPECT_EQ(refused.code().value(), ECONNREFUSED);
      EXPECT_NE(std::strstr(refused.what(), "cannot connect to 127.0.0.1 port"), nullptr);
    }

    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    stream_socket left(ends[0]), right(ends[1]);
    right.close();
    EXPECT_EQ(left.write(&byte, 1), -EPIPE);  // and no SIGPIPE
    EXPECT_EQ(left.read(&byte, 1), 0);
  });
}

// A reader that waits does not keep a writer from writing, and shutdown() gets it out.
TEST(FiberSockets, OneReadsWhileAnotherWrites) {
  run({.workers = 2}, [] {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    stream_socket left(ends[0]), right(ends[1]);
    char byte = 'r';
    fiber reader([&] { EXPECT_EQ(left.read(&byte, 1), 0); });
    this_fiber::sleep_for(1ms);
    EXPECT_EQ(left.write("w", 1), 1);
    char other = 0;
    EXPECT_EQ(right.read(&other, 1), 1);
    EXPECT_EQ(other, 'w');
    left.shutdown();
    reader.join();
  });
}

}  // namespace
