#include "kv/server.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <list>
#include <thread>
#include <utility>
#include <vector>

namespace kv {
namespace {

using hl::fibers::stream_socket;

constexpr std::size_t kReadBytes = std::size_t{16} << 10;
constexpr std::chrono::milliseconds kAfterFailure{10};

}  // namespace

Server::Server(Store& store, const ServerOptions& options)
    : options_(options),
      service_(store, options.threads),
      listener_(stream_socket::listen(options.address, options.port)) {}

void Server::run() {
  if (options_.fibers)
    hl::fibers::run({.workers = options_.threads, .hints_park = !options_.blocking}, [&] { accept_on_fibers(); });
  else
    accept_on_threads();
}

void Server::stop() {
  std::lock_guard lock(mutex_);
  stopping_ = true;
  listener_.shutdown();
  for (stream_socket* peer : peers_) peer->shutdown();
}

// Not open when the server stops. When there are no descriptors left, those who are there may go meanwhile.
stream_socket Server::accept() {
  for (;;) {
    int error = 0;
    stream_socket peer = listener_.accept(&error);
    if (peer) return peer;
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return peer;
    }
    if (error != ECONNABORTED) {
      std::fprintf(stderr, "kv: cannot accept a connection: %s\n", std::strerror(error));
      hl::fibers::this_fiber::sleep_for(kAfterFailure);
    }
  }
}

void Server::accept_on_fibers() {
  while (stream_socket peer = accept())
    hl::fibers::fiber([this, peer = std::move(peer)]() mutable { serve(std::move(peer)); }, {.name = "connection"})
        .detach();
}

void Server::accept_on_threads() {
  struct Connection {
    std::atomic<bool> ended{false};
    std::thread thread;
  };
  std::list<Connection> connections;
  auto join_if = [&](auto&& which) {
    for (auto at = connections.begin(); at != connections.end();) {
      auto next = std::next(at);
      if (which(*at)) {
        at->thread.join();
        connections.erase(at);
      }
      at = next;
    }
  };
  while (stream_socket peer = accept()) {
    join_if([](const Connection& connection) { return connection.ended.load(); });
    Connection& connection = connections.emplace_back();
    connection.thread = std::thread([this, &connection, peer = std::move(peer)]() mutable {
      serve(std::move(peer));
      connection.ended.store(true);
    });
  }
  join_if([](const Connection&) { return true; });
}

void Server::serve(stream_socket peer) {
  if (!enter(&peer)) return;
  try {
    Session session(service_, [&](std::string_view text) { return peer.write_all(text.data(), text.size()) >= 0; });
    std::vector<char> buffer(kReadBytes);  // not on a fiber's stack
    std::ptrdiff_t got = 0;
    while ((got = peer.read(buffer.data(), buffer.size())) > 0)
      if (!session.consume({buffer.data(), static_cast<std::size_t>(got)})) break;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "kv: no memory for a connection; it is closed\n");
  }
  leave(&peer);
}

bool Server::enter(stream_socket* peer) {
  std::lock_guard lock(mutex_);
  if (stopping_) return false;
  peers_.insert(peer);
  ++service_.connections;
  ++service_.connections_ever;
  return true;
}

void Server::leave(stream_socket* peer) {
  std::lock_guard lock(mutex_);
  peers_.erase(peer);
  --service_.connections;
}

}  // namespace kv
