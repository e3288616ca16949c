#include "far/tcp/tcp_computer.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "far/tcp/blocking_io.hpp"
#include "far/tcp/computer_link.hpp"
#include "far/tcp/tcp_device.hpp"

namespace hinterland::far {

namespace elements = hl::far::detail;

namespace {

// Behind what is there; the new end.
std::size_t put(std::span<std::byte> bytes, std::size_t at, std::span<const std::byte> what) {
  std::memcpy(bytes.data() + at, what.data(), what.size());
  return at + what.size();
}

}  // namespace

int TcpComputer::compute(const hl_computation& what, std::span<const Piece> pieces, std::byte* results, bool* done) {
  const bool together = what.operation == elements::spread;
  Asked asked{wire::Type::compute,
              what.operation,
              &what,
              nullptr,
              nullptr,
              together ? 0 : elements::result_bytes(what.operation, 1),
              pieces,
              results,
              done};
  LockGuard lock(mutex_);
  return run_locked(asked);
}

int TcpComputer::apply(const OperatorName& which, const std::byte* argument, std::span<const Piece> pieces,
                       std::byte* results, bool* done) {
  Asked asked{wire::Type::apply, 0, nullptr, &which, argument, which.result_bytes, pieces, results, done};
  LockGuard lock(mutex_);
  return run_locked(asked);
}

int TcpComputer::run_locked(Asked& asked) {
  return -with_link_locked([&] {
    bool is_there = true;
    const int result = asked.which != nullptr ? find_locked(asked, &is_there) : 0;
    return result == 0 && is_there ? ask_locked(asked) : result;
  });
}

// Sets asked.field. What the server has does not change for as long as the session lasts, but for what it withdraws.
int TcpComputer::find_locked(Asked& asked, bool* is_there) {
  for (const Known& known : known_) {
    if (known.which != *asked.which) continue;
    asked.field = known.field;
    *is_there = known.is_there;
    return 0;
  }
  const std::uint64_t deadline = now_ns() + device_.timeout_ns();
  struct {
    wire::Header header;
    wire::OperatorRequest request;
  } whole{wire::make_request(wire::Type::find_operator, 0, next_id_++),
          {asked.which->name, asked.which->version, asked.which->element_bytes, asked.which->argument_bytes,
           asked.which->result_bytes}};
  int result = send_all(link_.descriptor(), wire::bytes_of(whole), deadline);
  if (result != 0) return result;
  wire::Header bytes, reply;
  result = receive_all(link_.descriptor(), std::as_writable_bytes(std::span(&bytes, 1)), deadline);
  if (result != 0) return result;
  if (wire::parse_reply(wire::bytes_of(bytes), &reply) != wire::Fault::none || reply.id != whole.header.id ||
      reply.type != (static_cast<std::uint16_t>(wire::Type::find_operator) | wire::kReplyBit))
    return -EPROTO;
  *is_there = reply.status == static_cast<std::uint32_t>(wire::Code::ok);
  if (*is_there && wire::applied_result_bytes(reply.slab) != asked.which->result_bytes) return -EPROTO;
  asked.field = reply.slab;
  note_locked(*asked.which, *is_there, reply.slab);
  return 0;
}

void TcpComputer::note_locked(const OperatorName& which, bool is_there, std::uint32_t field) {
  for (Known& known : known_) {
    if (known.which != which) continue;
    known = {which, is_there, field};
    return;
  }
  known_[known_count_++ % known_.size()] = {which, is_there, field};
}

int TcpComputer::connect_locked(std::uint64_t limit_ns) {
  if (channel_ == 0) channel_ = device_.next_channel_name();
  int result = device_.connect(link_, wire::Type::session_join, channel_, now_ns() + limit_ns);
  return result != 0 ? result : device_.drive_to_end(link_);
}

int TcpComputer::ask_locked(Asked& asked) {
  return go_through<Message>(
      asked, asked.pieces.size(), [&](Message* message) { return send_locked(asked, message); },
      [&](const Message& message) { return receive_locked(asked, message); });
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
  return send_message_locked(asked, *message, std::span(list).first(message->count));
}

int TcpComputer::send_message_locked(const Asked& asked, const Message& message, std::span<const wire::Piece> list) {
  std::array<std::byte, wire::kRequestPrefixMax> bytes;
  std::size_t end = 0;
  if (asked.what != nullptr) {
    const wire::ComputeRequest request{asked.what->element, asked.what->relation, asked.what->shift, std::uint16_t{0},
                                       asked.what->operand};
    end = put(bytes, end, wire::bytes_of(wire::make_compute_request(asked.field, message.count, message.id)));
    end = put(bytes, end, wire::bytes_of(request));
    end = put(bytes, end, std::as_bytes(list));
  } else {
    wire::ApplyRequest request{};
    std::copy_n(asked.argument, asked.which->argument_bytes, request.argument.begin());
    end = put(bytes, end, wire::bytes_of(wire::make_apply_request(asked.field, message.count, message.id)));
    end = put(bytes, end, wire::bytes_of(request));
    end = put(bytes, end, std::as_bytes(list));
    for (std::size_t i = 0; i < message.count; ++i)
      end = put(bytes, end, wire::bytes_of(wire::Word{asked.pieces[message.which[i]].word}));
  }
  return send_all(link_.descriptor(), std::span(bytes).first(end), now_ns() + device_.timeout_ns());
}

int TcpComputer::receive_locked(Asked& asked, const Message& message) {
  std::uint64_t deadline = now_ns() + device_.timeout_ns();
  wire::Header bytes, reply;
  int result = receive_all(link_.descriptor(), std::as_writable_bytes(std::span(&bytes, 1)), deadline);
  if (result != 0) return result;
  if (wire::parse_reply(wire::bytes_of(bytes), &reply) != wire::Fault::none || reply.id != message.id ||
      reply.type != (static_cast<std::uint16_t>(asked.type) | wire::kReplyBit) || reply.count != message.count ||
      reply.slab != asked.field || reply.stamp != message.echo)
    return -EPROTO;
  if (reply.status == static_cast<std::uint32_t>(wire::Code::no_operator) && asked.which != nullptr)
    note_locked(*asked.which, false, 0);  // withdrawn
  // Refused: these pieces are left to the caller.
  if (reply.length == 0) return 0;
  result = receive_all(link_.descriptor(), std::span(reply_).first(reply.length), deadline);
  if (result == 0) store(asked, message);
  return result;
}

void TcpComputer::store(Asked& asked, const Message& message) const {
  const std::size_t size = asked.result_bytes;
  for (std::size_t i = 0; i < message.count; ++i) {
    asked.done[message.which[i]] = true;
    std::memcpy(asked.results + message.which[i] * size, reply_.data() + i * size, size);
  }
  if (size != 0) return;
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
