// hinterland serve: the memory server, until SIGTERM or SIGINT.
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>

#include "base/log.hpp"
#include "base/size.hpp"
#include "cli/command_line.hpp"
#include "cli/listen_address.hpp"
#include "far/tcp/key_file.hpp"
#include "server/confine.hpp"
#include "server/server.hpp"

namespace hinterland::cli {
namespace {

Server* g_server = nullptr;  // for the signal handler

void stop_in_handler(int) { g_server->stop(); }

void stop_on_signals(Server& server) {
  g_server = &server;
  struct sigaction action{};
  action.sa_handler = stop_in_handler;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);  // whoever read our output may go
}

// A client has several connections, and the usual soft limit of 1024 is for programs that use select(). What is too
// few all the same is said now; a server that ran out later would turn clients away who were promised a place.
void fit_to_descriptors(ServerOptions& options) {
  constexpr std::uint64_t kOthers = 64;  // the listener, epoll sets, standard streams, what a library may open
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  if (limit.rlim_cur != limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  std::uint64_t wanted = options.connections_max + options.strangers_max() + kOthers;
  if (wanted <= limit.rlim_max) return;
  std::uint64_t left = limit.rlim_max > 2 * kOthers ? limit.rlim_max - kOthers : kOthers;
  // A quarter for those who still have to show that they may come.
  options.handshakes_max = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(left / 4 / ServerOptions::kAddressesAtOnce, 1, options.handshakes_max));
  std::uint64_t strangers = options.strangers_max();
  options.connections_max = static_cast<std::uint32_t>(left > strangers ? left - strangers : 1);
  log::info(
      "descriptors suffice for %u connections and %u handshakes of one address at once; for more, raise the limit: "
      "ulimit -n %llu",
      options.connections_max, options.handshakes_max, static_cast<unsigned long long>(wanted));
}

// A reader may be waiting for this line to know that clients can come: it goes out at once.
void announce(const Server& server, const CommandLine& line) {
  std::printf("listening on %s, offering %s, %s\n", server.address().c_str(),
              rounded_size_text(server.memory_bytes()).c_str(),
              server.asks_for_key() ? "to clients that have the key" : "to any client, without a key");
  std::string key = server.asks_for_key() ? " --key-file " + line.text(OptionId::key_file) : "";
  std::printf("use it with: hinterland run --far tcp://%s%s -- PROGRAM\n", server.address().c_str(), key.c_str());
  std::fflush(stdout);
}

void say_operators(const ServerOptions& options) {
  for (const LoadedOperator& each : options.operators)
    log::info("offers operator %s, version %u, of %s", each.what->name, each.what->version, each.path.c_str());
}

void say_goodbye(const Server& server) {
  ServerStats stats = server.stats();
  log::info(
      "ended; served %llu requests, %llu pages and %llu parts of pages read, %llu pages written, %llu connections "
      "refused",
      static_cast<unsigned long long>(stats.requests), static_cast<unsigned long long>(stats.pages_read),
      static_cast<unsigned long long>(stats.ranges_read), static_cast<unsigned long long>(stats.pages_written),
      static_cast<unsigned long long>(stats.handshakes_refused));
}

Result<ServerOptions> options_of(const CommandLine& line) {
  Result<ListenAddress> address = parse_listen_address(line.text(OptionId::listen), line[OptionId::listen].named);
  if (!address) return std::unexpected(address.error());
  if (line.is_flag(OptionId::insecure) && line.is_flag(OptionId::key_file)) {
    Error error = Error::make(0, "--insecure and --key-file contradict each other");
    return std::unexpected(error.remedy("leave --insecure out: with a key it is not needed"));
  }
  if (line.number(OptionId::no_offload) != 0 && line.is_given(OptionId::operators)) {
    Error error = Error::make(0, "--no-offload and --operators contradict each other");
    return std::unexpected(error.remedy("leave one of them out"));
  }
  ServerOptions options;
  options.host = address->host;
  options.port = address->port;
  options.memory_bytes = line.number(OptionId::memory);
  options.client_memory_bytes = line.number(OptionId::client_memory);
  auto count = [&line](OptionId id) { return static_cast<std::uint32_t>(line.number(id)); };
  options.clients_max = count(OptionId::clients);
  options.address_memory_bytes = line.number(OptionId::address_memory);
  options.address_clients_max = count(OptionId::address_clients);
  options.address_connections_max = count(OptionId::address_connections);
  options.connections_max = count(OptionId::connections);
  options.client_connections_max = count(OptionId::client_connections);
  options.handshakes_max = count(OptionId::handshakes);
  options.handshakes_a_second_max = count(OptionId::handshake_rate);
  options.key_file = line.text(OptionId::key_file);
  options.insecure = line.number(OptionId::insecure) != 0;
  options.compute = line.number(OptionId::no_offload) == 0;
  options.threads = static_cast<std::uint32_t>(line.number(OptionId::threads));
  return options;
}

int make_key(const std::string& path) {
  if (Status made = far::make_key_file(path); !made) return fail(kEnvironment, made.error());
  std::printf("wrote a key to %s: copy it to the machines that use it, by a way that others cannot read\n",
              path.c_str());
  return kSuccess;
}

}  // namespace

int serve_main(const Arguments& arguments) {
  Result<CommandLine> line = CommandLine::parse(*find_command("serve"), arguments);
  if (!line) return fail(kUsage, line.error());
  if (line->wants_help()) return help_main({"serve"});
  if (!line->rest().empty()) return fail(kUsage, unexpected_argument("serve", line->rest()[0]));
  if (line->is_flag(OptionId::make_key)) return make_key(line->text(OptionId::make_key));
  Result<ServerOptions> options = options_of(*line);
  if (!options) return fail(kUsage, options.error());
  if (line->is_given(OptionId::operators)) {
    auto operators = load_operators(line->text(OptionId::operators));
    if (!operators) return fail(kEnvironment, operators.error());
    options->operators = std::move(*operators);
  }
  fit_to_descriptors(*options);
  Result<std::unique_ptr<Server>> server = Server::create(*options);
  if (!server) return fail(kEnvironment, server.error());
  stop_on_signals(**server);
  if (Status confined = confine(); !confined)
    log::warning("%s: the server goes on without this protection", confined.error().what());
  say_operators(*options);
  announce(**server, *line);
  Status served = (*server)->run();
  if (!served) return fail(kEnvironment, served.error());
  say_goodbye(**server);
  return kSuccess;
}

}  // namespace hinterland::cli
