// kv_server: the server of kv alone, for any client of memcached's protocol. Serves until SIGTERM or SIGINT.
#include <pthread.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>

#include "command/options.hpp"
#include "kv/server.hpp"

namespace {

int serve(const std::string& address, kv::ServerOptions options, std::size_t memory_bytes) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // before there are threads, which inherit it
  options.address = address.c_str();
  kv::Store store(memory_bytes);
  kv::Server server(store, options);
  std::printf("port %u\n", unsigned{server.port()});
  std::fflush(stdout);
  std::jthread waiting([&] {
    int signal = 0;
    sigwait(&ends, &signal);
    server.stop();
  });
  server.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Options parser("kv_server", "Serves memcached's text protocol");
  kv::ServerOptions options;
  std::string address = "127.0.0.1";
  std::size_t memory_bytes = std::size_t{64} << 20;
  bool threads_alone = false;
  unsigned port = 0;
  parser.text("--address", address, "to listen on");
  parser.number("--port", port, "0: a free one, which is printed", 0, 65535);
  parser.size("--memory", memory_bytes, "of items, at least 1M; beyond it the longest unused leave", "64M");
  parser.number("--threads", options.threads, "that run the fibers", 1, 256);
  parser.flag("--no-fibers", threads_alone, "a thread for each connection");
  parser.flag("--blocking", options.blocking, "hints block the thread, instead of parking the fiber");
  if (std::optional<int> status = parser.parse(argc, argv)) return *status;
  options.port = static_cast<std::uint16_t>(port);
  options.fibers = !threads_alone;
  if (memory_bytes < std::size_t{1} << 20) {
    std::fprintf(stderr, "kv_server: --memory is less than 1M\n");
    return 2;
  }
  try {
    return serve(address, options, memory_bytes);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "kv_server: %s\n", failure.what());
    return 1;
  }
}
