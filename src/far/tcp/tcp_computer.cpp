#include "far/tcp/tcp_computer.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "far/tcp/blocking_io.hpp"
#include "far/tcp/tcp_device.hpp"

namespace hinterland::far {

namespace elements = hl::far::detail;

int TcpComputer::compute(const hl_computation& what, std::span<const Piece> pieces, std::byte* results, bool* done) {
  LockGuard lock(mutex_);
  Asked asked{what, pieces, results, done};
  int result = -EAGAIN;
  if (failed_ns_ != 0 && now_ns() < failed_ns_ + device_.timeout_ns()) return EAGAIN;
  // The retry has its own time, so that a server that stands still costs one time limit and a little more.
  for (std::uint64_t limit_ns : {device_.timeout_ns(), kRetryNs}) {
    if (device_.lost() != 0) return device_.lost();
    result = link_.ready() ? 0 : connect_locked(limit_ns);
    if (result == 0) result = ask_locked(asked);
    failed_ns_ = result != 0 ? now_ns() : 0;
    if (result == 0) return 0;
    device_.drop(link_);
  }
  return -result;
}

int TcpComputer::connect_locked(std::uint64_t limit_ns) {
  if (channel_ == 0) channel_ = device_.next_channel_name();
  int result = device_.connect(link_, wire::Type::session_join, channel_, now_ns() + limit_ns);
  return result != 0 ? result : device_.drive_to_end(link_);
}

// The server answers in the order in which it was asked. When this fails, asked.next is the first piece that has no
// answer.
int TcpComputer::ask_locked(Asked& asked) {
  std::array<Message, kAhead> messages;
  std::size_t sent = 0, answered = 0;
  for (;;) {
    while (sent - answered < kAhead && asked.next < asked.pieces.size()) {
      Message& message = messages[sent % kAhead];
      int result = send_locked(asked, &message);
      if (result != 0) {
        asked.next = sent != answered ? messages[answered % kAhead].begin : message.begin;
        return result;
      }
      sent += message.count != 0 ? 1 : 0;
    }
    if (sent == answered) return 0;
    const Message& message = messages[answered % kAhead];
    if (int result = receive_locked(asked, message); result != 0) {
      asked.next = message.begin;
      return result;
    }
    ++answered;
  }
}

// The next pieces that the server has; none may be left.
int TcpComputer::send_locked(Asked& asked, Message* message) {
  std::array<wire::Piece, wire::kPagesMax> list;
  message->begin = asked.next;
  message->count = 0;
  for (; asked.next < asked.pieces.size() && message->count < wire::kPagesMax; ++asked.next) {
    const Piece& piece = asked.pieces[asked.next];
    std::uint64_t checksum = device_.pages().contains(piece.page) ? device_.pages().checksum(piece.page) : 0;
    if (checksum == 0) continue;
    list[message->count] = {piece.page.value, checksum, piece.offset, piece.bytes, 0u};
    message->which[message->count++] = static_cast<std::uint32_t>(asked.next);
  }
  if (message->count == 0) return 0;
  message->id = next_id_++;
  message->echo = wire::echo_of(std::span<const wire::Piece>(list).first(message->count));
  struct {
    wire::Header header;
    wire::ComputeRequest request;
    std::array<wire::Piece, wire::kPagesMax> pieces;
  } whole{wire::make_compute_request(asked.what.operation, message->count, message->id),
          {asked.what.element, asked.what.relation, asked.what.shift, std::uint16_t{0}, asked.what.operand},
          list};
  std::size_t bytes = sizeof whole.header + whole.header.length;
  return send_all(link_.descriptor(), wire::bytes_of(whole).first(bytes), now_ns() + device_.timeout_ns());
}

int TcpComputer::receive_locked(Asked& asked, const Message& message) {
  std::uint64_t deadline = now_ns() + device_.timeout_ns();
  wire::Header bytes, reply;
  int result = receive_all(link_.descriptor(), std::as_writable_bytes(std::span(&bytes, 1)), deadline);
  if (result != 0) return result;
  if (wire::parse_reply(wire::bytes_of(bytes), &reply) != wire::Fault::none || reply.id != message.id ||
      reply.type != (static_cast<std::uint16_t>(wire::Type::compute) | wire::kReplyBit) ||
      reply.count != message.count || reply.slab != asked.what.operation || reply.stamp != message.echo)
    return -EPROTO;
  // Refused: these pieces are left to the caller.
  if (reply.length == 0) return 0;
  result = receive_all(link_.descriptor(), std::span(reply_).first(reply.length), deadline);
  if (result == 0) store(asked, message);
  return result;
}

void TcpComputer::store(Asked& asked, const Message& message) const {
  const bool together = asked.what.operation == elements::spread;
  const std::size_t size = together ? 0 : elements::result_bytes(asked.what.operation, 1);
  for (std::size_t i = 0; i < message.count; ++i) {
    asked.done[message.which[i]] = true;
    std::memcpy(asked.results + message.which[i] * size, reply_.data() + i * size, size);
  }
  if (!together) return;
  for (std::size_t digit = 0; digit < elements::spread_digits; ++digit) {
    std::uint32_t more, all;
    std::memcpy(&more, reply_.data() + digit * sizeof more, sizeof more);
    std::memcpy(&all, asked.results + digit * sizeof all, sizeof all);
    all += more;
    std::memcpy(asked.results + digit * sizeof all, &all, sizeof all);
  }
}

// Join first, let go of the parent's connection after (TcpDevice::after_fork_in_child()).
void TcpComputer::before_join_in_child() {
  mutex_.reset_after_fork();
  link_.forget_if_closed();
  inherited_ = link_.release();
  channel_ = 0;
}

void TcpComputer::after_join_in_child() {
  if (inherited_ >= 0) ::close(std::exchange(inherited_, -1));
}

}  // namespace hinterland::far
