// TcpDevice: requests over the control connection, one at a time, with their one retry.
#include <poll.h>

#include <cerrno>

#include "base/clock.hpp"
#include "far/tcp/tcp_device.hpp"

namespace hinterland::far {
namespace {

int wait_for(int fd, short events, std::uint64_t deadline_ns) {
  std::uint64_t now = now_ns();
  if (now >= deadline_ns) return -ETIMEDOUT;
  pollfd waiting{fd, events, 0};
  ::poll(&waiting, 1, static_cast<int>((deadline_ns - now) / 1'000'000) + 1);
  return 0;
}

int send_all(int fd, std::span<const std::byte> bytes, std::uint64_t deadline_ns) {
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

int receive_all(int fd, std::span<std::byte> bytes, std::uint64_t deadline_ns) {
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

// tell() does not wait for these.
bool is_reply_to_tell(const wire::Header& reply) {
  wire::Type type{static_cast<std::uint16_t>(reply.type & ~wire::kReplyBit)};
  return type == wire::Type::leave || type == wire::Type::ping;
}

const char* reason(int error) {
  if (error == ETIMEDOUT) return "does not answer";
  if (error == EPROTO) return "sends garbage";
  return "closed the connection";
}

}  // namespace

int TcpDevice::exchange_locked(const wire::Header& request, std::span<const std::byte> body, wire::Header* reply,
                               std::uint64_t deadline_ns) {
  int fd = control_.descriptor();
  if (int result = send_all(fd, wire::bytes_of(request), deadline_ns); result != 0) return result;
  if (int result = send_all(fd, body, deadline_ns); result != 0) return result;
  do {
    std::array<std::byte, sizeof(wire::Header)> bytes;
    if (int result = receive_all(fd, bytes, deadline_ns); result != 0) return result;
    if (wire::parse_reply(bytes, reply) != wire::Fault::none) return -EPROTO;
  } while (reply->id != request.id && is_reply_to_tell(*reply) && now_ns() < deadline_ns);
  if (reply->id != request.id || reply->type != (request.type | wire::kReplyBit)) return -EPROTO;
  if (reply->count != request.count) return -EPROTO;
  return 0;
}

std::expected<wire::Header, int> TcpDevice::call_locked(wire::Header request, std::span<const std::byte> body) {
  // The same id both times: the server recognises a request it has done already and only repeats its answer.
  std::uint64_t start = now_ns();
  wire::Header reply;
  int result = control_.ready() ? exchange_locked(request, body, &reply, start + timeout_ns_) : -ENOTCONN;
  if (result == 0) return reply;
  std::uint64_t deadline = start + timeout_ns_ + kRetryNs;
  control_.drop();
  if (connect(control_, wire::Type::session_join, control_channel_, deadline) != 0 || drive_to_end(control_) != 0) {
    lose(control_.failure());
    return std::unexpected(lost());
  }
  count_reconnect();
  result = exchange_locked(request, body, &reply, deadline);
  if (result == 0) return reply;
  control_.drop();
  lose(-result, reason(-result));
  return std::unexpected(lost());
}

}  // namespace hinterland::far
