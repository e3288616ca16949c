// Connections to a store, each on a fiber of its own, or each on a thread of its own.
#pragma once

#include <hinterland/fiber.hpp>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <unordered_set>

#include "kv/session.hpp"

namespace kv {

struct ServerOptions {
  const char* address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: a free one
  unsigned threads = 1;    // that run fibers
  bool fibers = true;      // false: a thread for each connection
  bool blocking = false;   // hints block the thread, and all fibers on it, instead of parking one (Eden's BH)
};

class Server {
 public:
  // Listens. Throws std::system_error.
  Server(Store& store, const ServerOptions& options);
  std::uint16_t port() const { return listener_.port(); }
  // Serves until stop(); then all connections are gone.
  void run();
  // Once; from any thread.
  void stop();

 private:
  void accept_on_fibers();
  void accept_on_threads();
  hl::fibers::stream_socket accept();
  void serve(hl::fibers::stream_socket peer);
  bool enter(hl::fibers::stream_socket* peer);
  void leave(hl::fibers::stream_socket* peer);

  const ServerOptions options_;
  Service service_;
  hl::fibers::stream_socket listener_;
  hl::fibers::mutex mutex_;  // of what follows
  std::unordered_set<hl::fibers::stream_socket*> peers_;
  bool stopping_ = false;
};

}  // namespace kv
