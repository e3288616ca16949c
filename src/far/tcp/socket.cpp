#include "far/tcp/socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/raw_call.hpp"

namespace hinterland::far {
namespace {

// glibc's sockaddr types are views of one storage; memcpy keeps the reads defined.
template <typename T>
T view_of(const Endpoint& endpoint) {
  T view;
  std::memcpy(&view, &endpoint.address, sizeof view);
  return view;
}

}  // namespace

bool Endpoint::is_loopback() const {
  if (family() == AF_INET) return (ntohl(view_of<sockaddr_in>(*this).sin_addr.s_addr) >> 24) == 127;
  if (family() != AF_INET6) return false;
  in6_addr v6 = view_of<sockaddr_in6>(*this).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

std::uint16_t Endpoint::port() const {
  if (family() == AF_INET) return ntohs(view_of<sockaddr_in>(*this).sin_port);
  return ntohs(view_of<sockaddr_in6>(*this).sin6_port);
}

std::string to_string(const Endpoint& endpoint) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (endpoint.family() == AF_INET) {
    in_addr v4 = view_of<sockaddr_in>(endpoint).sin_addr;
    inet_ntop(AF_INET, &v4, text, sizeof text);
    return std::string(text) + ":" + std::to_string(endpoint.port());
  }
  in6_addr address = view_of<sockaddr_in6>(endpoint).sin6_addr;
  inet_ntop(AF_INET6, &address, text, sizeof text);
  return "[" + std::string(text) + "]:" + std::to_string(endpoint.port());
}

Result<std::vector<Endpoint>> resolve(const std::string& host, std::uint16_t port, bool to_listen) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  std::string service = std::to_string(port);
  int failed = getaddrinfo(host.empty() ? nullptr : host.c_str(), service.c_str(), &hints, &found);
  if (failed != 0) {
    Error error = Error::make(failed == EAI_SYSTEM ? errno : 0, "cannot find host '%s': %s", host.c_str(),
                              gai_strerror(failed));
    error.remedy("check the name: getent hosts '%s'", host.c_str());
    return std::unexpected(error);
  }
  std::vector<Endpoint> endpoints;
  for (addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
    Endpoint endpoint;
    std::memcpy(&endpoint.address, each->ai_addr, each->ai_addrlen);
    endpoint.length = each->ai_addrlen;
    endpoints.push_back(endpoint);
  }
  freeaddrinfo(found);
  if (endpoints.empty()) return std::unexpected(Error::make(0, "host '%s' has no IP address", host.c_str()));
  return endpoints;
}

int start_connect(int fd, const Endpoint& endpoint) {
  set_stream_options(fd);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.length) == 0) return 0;
  return errno == EINPROGRESS || errno == EINTR ? 0 : -errno;
}

int connect_error(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return -errno;
  return -error;
}

void set_stream_options(int fd) {
  int on = 1, idle_s = 20, interval_s = 10, probes = 3;
  unsigned user_timeout_ms = 50'000;
  // Each is an improvement, none a condition: failures do not matter.
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, sizeof user_timeout_ms);
}

void close_at_once(int fd) {
  linger none{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  ::close(fd);
}

bool was_received_here(int fd) {
  int cpu = -1;
  socklen_t length = sizeof cpu;
  return getsockopt(fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, &length) == 0 && cpu >= 0 && cpu == sched_getcpu();
}

// Raw: fcntl() is the preloaded library's, to which the runtime's descriptors are not open.
bool is_open(int fd) { return fd >= 0 && !raw::failed(raw::call(SYS_fcntl, fd, F_GETFD)); }

bool is_of_this_process(int error) { return error == EBADF || error == ENOTSOCK; }

std::int64_t send_some(int fd, std::span<const iovec> parts) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  for (;;) {
    ssize_t n = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return n;
    if (errno != EINTR) return -errno;
  }
}

std::int64_t receive_some(int fd, std::span<const iovec> parts) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  for (;;) {
    ssize_t n = ::recvmsg(fd, &message, MSG_DONTWAIT);
    if (n >= 0) return n;
    if (errno != EINTR) return -errno;
  }
}

}  // namespace hinterland::far
