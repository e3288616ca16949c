// The real memcached, as a child of this process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace memcached {

struct ServerOptions {
  std::string program;
  unsigned threads = 1;
  std::size_t memory_bytes = 0;  // of its items: rounded up to MiB
  std::uint64_t keys = 0;        // so many buckets from the start: growing is not what is measured
};

class Server {
 public:
  // Starts it on a free port of this machine, and waits until it listens. Throws std::runtime_error.
  explicit Server(const ServerOptions& options);
  ~Server();  // kills it, if it was not ended
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  pid_t pid() const { return pid_; }
  std::uint16_t port() const { return port_; }
  // Ends it, and waits. Throws std::runtime_error when it does not end well.
  void end();

 private:
  void start(const ServerOptions& options);
  bool is_ready();
  void clean_up();

  std::string folder_, port_file_;
  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace memcached
