// TCP sockets as both sides use them: non-blocking, close-on-exec, without SIGPIPE. Failure is -errno.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace hinterland::far {

struct Endpoint {
  sockaddr_storage address{};
  socklen_t length = 0;
  int family() const { return address.ss_family; }
  bool is_loopback() const;
  std::uint16_t port() const;
};

// Looks a host up (getaddrinfo: may block, allocates, may load libraries: at set-up only). At least one result.
Result<std::vector<Endpoint>> resolve(const std::string& host, std::uint16_t port, bool to_listen);
std::string to_string(const Endpoint& endpoint);  // 127.0.0.1:9000, [::1]:9000

// Starts a connection by a new stream socket that does not block; it is writable once that is there or failed
// (connect_error()). 0 or -errno.
int start_connect(int fd, const Endpoint& endpoint);
int connect_error(int fd);  // 0 or -errno of a started connection

// TCP_NODELAY, and keep-alive so that a peer whose machine vanished is noticed within about a minute.
void set_stream_options(int fd);

// Closes a connection without the farewell of TCP, which the kernel would remember for a minute.
void close_at_once(int fd);

// Whether the CPU on which the caller runs is the one that took in what the socket received last. Over loopback that
// is the CPU that the peer sent it from.
bool was_received_here(int fd);

// Above those of other rooms: who takes one back under its old number finds no connection there.
inline constexpr int kFirstHighDescriptor = 1000;

// Whether the process has a descriptor of this number, ours or the program's. Keeps errno.
bool is_open(int fd);
// Whether a call on a socket failed for what this process did: it closed the number by a call that nobody sees, or
// put something else there. That says nothing of the peer.
bool is_of_this_process(int error);

// One sendmsg/recvmsg; retried after EINTR. Bytes, 0 at the end of the stream (receive), -EAGAIN, or -errno.
std::int64_t send_some(int fd, std::span<const iovec> parts);
std::int64_t receive_some(int fd, std::span<const iovec> parts);

}  // namespace hinterland::far
