// kv_server: the server of kv alone, for any client of memcached's protocol. Serves until SIGTERM or SIGINT.
#include <pthread.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>

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
  CLI::App app("Serves memcached's text protocol", "kv_server");
  kv::ServerOptions options;
  std::string address = "127.0.0.1";
  std::size_t memory_bytes = std::size_t{64} << 20;
  bool threads_alone = false;
  app.add_option("--address", address, "to listen on")->capture_default_str();
  app.add_option("--port", options.port, "0: a free one, which is printed")->capture_default_str();
  app.add_option("--memory", memory_bytes, "of items, at least 1M; beyond it the longest unused leave")
      ->transform(CLI::AsSizeValue(false))
      ->default_str("64M");
  app.add_option("--threads", options.threads, "that run the fibers")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_flag("--no-fibers", threads_alone, "a thread for each connection");
  app.add_flag("--blocking", options.blocking, "hints block the thread, instead of parking the fiber");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
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
