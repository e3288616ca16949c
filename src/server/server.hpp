// The memory server: offers this machine's RAM to programs elsewhere, over the protocol of far/tcp/wire.hpp.
//
//     auto server = Server::create(options);      // listens from here on; errors say what to do
//     if (server) (*server)->run();               // until stop(), which a signal handler may call
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "server/operators.hpp"

namespace hinterland {

struct ServerOptions {
  std::string host = "127.0.0.1";  // name or address to listen on; beyond loopback only with a key, or insecure
  std::uint16_t port = 0;          // 0: any free one, see Server::port()
  std::uint64_t memory_bytes = 0;  // offered to all clients together, in whole slabs of 16 MiB
  std::string key_file;            // pre-shared key (far/tcp/key_file.hpp); "": clients are not authenticated
  bool insecure = false;           // listen beyond loopback without a key all the same
  std::uint32_t threads = 0;       // 0: one a core, at most 4
  bool compute = true;             // computes on clients' pages for them (computer.hpp)
  std::vector<LoadedOperator> operators;  // and with these (operators.hpp)

  // Limits, so that no client harms the others.
  std::uint64_t client_memory_bytes = 0;          // share of one client; 0: all
  std::uint64_t address_memory_bytes = 0;         // of all clients of an address; 0: all
  std::uint32_t clients_max = 4096;               // sessions
  std::uint32_t address_clients_max = 1024;       // of one address
  std::uint32_t address_connections_max = 12288;  // of one address
  std::uint32_t client_connections_max = 8192;    // of one session, its forked children included
  std::uint32_t connections_max = 16384;          // of all clients; fewer when descriptors do not suffice
  std::uint32_t handshakes_max = 256;             // of one address, of those that have not proved the key, at once
  std::uint32_t handshakes_a_second_max = 4096;   // of one address, of those that never prove it
  // Strangers of so many addresses find room together, each address having as many as it may.
  static constexpr std::uint32_t kAddressesAtOnce = 8;
  std::uint32_t strangers_max() const { return handshakes_max * kAddressesAtOnce; }
  std::uint64_t handshake_ns = 3'000'000'000;      // for the proof they have so long
  std::uint64_t resume_grace_ns = 10'000'000'000;  // memory of a vanished client is kept for so long
};

// Figures since the start, and of now. Read without locks.
struct ServerStats {
  std::uint64_t connections, sessions, strangers;            // now; the last: connections without a proof
  std::uint64_t slabs_used, slabs;                           // now, and in all; slabs of 16 MiB
  std::uint64_t slabs_to_wipe;                               // now; of nobody, and their memory not yet given back
  std::uint64_t requests;                                    // messages served
  std::uint64_t pages_read, pages_written, pages_discarded;  // of 4 KiB
  std::uint64_t ranges_read;                                 // parts of pages
  std::uint64_t pages_computed;                              // pieces of pages that something was computed on
  std::uint64_t handshakes_refused;  // wrong or missing key, wrong version, not ours, too slow, too many
  std::uint64_t connections_cut;     // for breaking the protocol
};

class Server {
 public:
  // Starts the process of the operators, where there are some (operator_process.hpp), binds and listens, reserves the
  // memory (touched only as it is used). May block for looking the host up.
  static Result<std::unique_ptr<Server>> create(const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves until stop(), on this thread and others that it starts and joins. Once.
  Status run();
  // Makes run() return. Any thread, also before run(), also from a signal handler.
  void stop();

  std::uint16_t port() const;
  const std::string& address() const;  // "127.0.0.1:9000", "[::1]:9000"
  std::uint64_t memory_bytes() const;  // offered, after rounding down to slabs
  bool asks_for_key() const;
  ServerStats stats() const;  // any thread

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hinterland
