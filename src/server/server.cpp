#include "server/server.hpp"

#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

#include "far/tcp/socket.hpp"
#include "server/connection.hpp"
#include "server/worker.hpp"

namespace hinterland {
namespace {

constexpr int kBacklog = 4096;  // the kernel's own limit (net.core.somaxconn) is as high on most machines

Result<int> listen_on(const far::Endpoint& endpoint) {
  int fd = ::socket(endpoint.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::unexpected(Error::make(errno, "cannot make a socket"));
  int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // a restart need not wait for old connections
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.length) == 0 &&
      ::listen(fd, kBacklog) == 0)
    return fd;
  int code = errno;
  ::close(fd);
  Error error = Error::make(code, "cannot listen on %s", far::to_string(endpoint).c_str());
  if (code == EADDRINUSE)
    error.remedy("another program uses the port: see it with: ss -ltnp 'sport = :%u'; or choose another",
                 endpoint.port());
  if (code == EACCES) error.remedy("ports below 1024 need privilege: choose a higher one");
  if (code == EADDRNOTAVAIL) error.remedy("this machine does not have that address: see: ip address");
  return std::unexpected(error);
}

Status check_exposure(const ServerOptions& options, const std::vector<far::Endpoint>& endpoints) {
  if (!options.key_file.empty() || options.insecure) return {};
  for (const far::Endpoint& endpoint : endpoints)
    if (!endpoint.is_loopback()) {
      Error error =
          Error::make(0, "refusing to listen on %s without a key: anybody who reaches it could use the memory",
                      far::to_string(endpoint).c_str());
      error.remedy("give a key with --key-file, or say --insecure if the network is trusted");
      return std::unexpected(error);
    }
  return {};
}

std::uint32_t slabs_of(std::uint64_t bytes, const Arena& arena) {
  std::uint64_t slabs = arena.slabs();
  if (bytes != 0) slabs = std::clamp<std::uint64_t>(bytes / far::kSlabBytes, 1, slabs);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(slabs, far::wire::kSlabNumbers));
}

}  // namespace

struct Server::Impl {
  ServerState state;
  int listener = -1;
  std::string address;
  std::uint16_t port = 0;
  std::vector<std::unique_ptr<Worker>> workers;

  ~Impl() {
    state.keeper_event = -1;  // nobody is there any more to be told
    workers.clear();          // before the state, to which their connections refer
    if (listener >= 0) ::close(listener);
  }
  Status listen();
  Status prepare_workers();
};

Status Server::Impl::listen() {
  auto endpoints = far::resolve(state.options.host, state.options.port, true);
  if (!endpoints) return std::unexpected(endpoints.error());
  if (Status exposed = check_exposure(state.options, *endpoints); !exposed) return exposed;
  Error first;
  for (const far::Endpoint& endpoint : *endpoints) {
    Result<int> fd = listen_on(endpoint);
    if (!fd) {
      if (first.what()[0] == '\0') first = fd.error();
      continue;
    }
    listener = *fd;
    far::Endpoint bound;
    bound.length = sizeof bound.address;
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&bound.address), &bound.length);
    address = far::to_string(bound);
    port = bound.port();
    return {};
  }
  return std::unexpected(first);
}

Status Server::Impl::prepare_workers() {
  std::uint32_t threads = state.options.threads;
  // More than 4 gain nothing before the network is full; on few cores they would only compete with the clients.
  if (threads == 0) threads = std::clamp(std::thread::hardware_concurrency(), 1u, 4u);
  for (std::uint32_t i = 0; i < threads; ++i) workers.push_back(std::make_unique<Worker>());
  for (std::uint32_t i = 0; i < threads; ++i)
    if (Status status = workers[i]->prepare(state, i == 0 ? listener : -1, workers); !status) return status;
  state.keeper_event = workers[0]->event_descriptor();
  return {};
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::create(const ServerOptions& options) {
  if (sodium_init() < 0) return std::unexpected(Error::make(0, "cannot initialise the crypto library"));
  auto impl = std::make_unique<Impl>();
  ServerState& state = impl->state;
  state.options = options;
  // First: its process must have nothing of the clients', and not the key.
  if (!options.operators.empty()) {
    Result<std::unique_ptr<OperatorProcess>> operators = OperatorProcess::start(options.operators);
    if (!operators) return std::unexpected(operators.error());
    state.operators = std::move(*operators);
  }
  if (!options.key_file.empty()) {
    Result<far::SecretKey> key = far::read_key_file(options.key_file);
    if (!key) return std::unexpected(key.error());
    state.key = std::move(*key);
  }
  Result<std::unique_ptr<Arena>> arena = Arena::create(options.memory_bytes);
  if (!arena) return std::unexpected(arena.error());
  state.arena = std::move(*arena);
  std::uint32_t share = slabs_of(options.client_memory_bytes, *state.arena);
  std::uint32_t of_address = slabs_of(options.address_memory_bytes, *state.arena);
  state.addresses = std::make_unique<AddressBook>(
      AddressLimits{of_address, options.address_clients_max, options.address_connections_max});
  state.sessions = std::make_unique<SessionTable>(*state.arena, std::min(share, of_address), options.clients_max);
  if (Status status = impl->listen(); !status) return std::unexpected(status.error());
  if (Status status = impl->prepare_workers(); !status) return std::unexpected(status.error());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Status Server::run() {
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < impl_->workers.size(); ++i)
    threads.emplace_back([worker = impl_->workers[i].get()] { worker->run(); });
  std::thread computer;
  if (impl_->state.options.compute) computer = std::thread([all = &impl_->state.computer] { all->run(); });
  std::thread applier;
  if (impl_->state.operators != nullptr)
    applier = std::thread([all = &impl_->state.operator_computer] { all->run(); });
  std::thread wiper([arena = impl_->state.arena.get()] { arena->wipe_until_stopped(); });
  impl_->workers[0]->run();
  for (std::thread& thread : threads) thread.join();
  impl_->state.computer.stop();
  impl_->state.operator_computer.stop();
  if (computer.joinable()) computer.join();
  if (applier.joinable()) applier.join();
  impl_->state.arena->stop_wiping();
  wiper.join();
  return {};
}

void Server::stop() {
  for (auto& worker : impl_->workers) worker->stop();
}

std::uint16_t Server::port() const { return impl_->port; }
const std::string& Server::address() const { return impl_->address; }
std::uint64_t Server::memory_bytes() const { return impl_->state.arena->slabs() * std::uint64_t{far::kSlabBytes}; }
bool Server::asks_for_key() const { return !impl_->state.key.empty(); }

ServerStats Server::stats() const {
  const ServerState& state = impl_->state;
  auto value = [](const std::atomic<std::uint64_t>& figure) { return figure.load(std::memory_order_relaxed); };
  return {
      .connections = value(state.connections),
      .sessions = state.sessions->size(),
      .strangers = value(state.strangers),
      .slabs_used = state.arena->slabs_used(),
      .slabs = state.arena->slabs(),
      .slabs_to_wipe = state.arena->slabs_to_wipe(),
      .requests = value(state.requests),
      .pages_read = value(state.pages_read),
      .pages_written = value(state.pages_written),
      .pages_discarded = value(state.pages_discarded),
      .ranges_read = value(state.ranges_read),
      .pages_computed = value(state.pages_computed),
      .handshakes_refused = value(state.handshakes_refused),
      .connections_cut = value(state.connections_cut),
  };
}

}  // namespace hinterland
