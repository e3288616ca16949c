// Whole messages over a non-blocking socket, for those who have nothing else to do meanwhile. 0 or -errno: -ETIMEDOUT
// when the deadline (now_ns() clock) has passed, -ECONNRESET when the other side closed.
#pragma once

#include <poll.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.hpp"
#include "far/tcp/socket.hpp"

namespace hinterland::far {

inline int wait_for(int fd, short events, std::uint64_t deadline_ns) {
  std::uint64_t now = now_ns();
  if (now >= deadline_ns) return -ETIMEDOUT;
  pollfd waiting{fd, events, 0};
  ::poll(&waiting, 1, static_cast<int>((deadline_ns - now) / 1'000'000) + 1);
  return 0;
}

inline int send_all(int fd, std::span<const std::byte> bytes, std::uint64_t deadline_ns) {
  while (!bytes.empty()) {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    std::int64_t n = send_some(fd, {&part, 1});
    if (n == -EAGAIN)
      n = wait_for(fd, POLLOUT, deadline_ns);
    else if (n > 0)
      bytes = bytes.subspan(static_cast<std::size_t>(n)), n = 0;
    if (n < 0) return static_cast<int>(n);
  }
  return 0;
}

inline int receive_all(int fd, std::span<std::byte> bytes, std::uint64_t deadline_ns) {
  while (!bytes.empty()) {
    iovec part{bytes.data(), bytes.size()};
    std::int64_t n = receive_some(fd, {&part, 1});
    if (n == 0) return -ECONNRESET;
    if (n == -EAGAIN)
      n = wait_for(fd, POLLIN, deadline_ns);
    else if (n > 0)
      bytes = bytes.subspan(static_cast<std::size_t>(n)), n = 0;
    if (n < 0) return static_cast<int>(n);
  }
  return 0;
}

}  // namespace hinterland::far
