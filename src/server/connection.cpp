#include "server/connection.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/log.hpp"

namespace hinterland {

using far::receive_some;
using far::send_some;
using far::wire::Fault;
using far::wire::Header;
using far::wire::Step;

Connection::Connection(ServerState& state, int fd, const far::Endpoint& peer)
    : state_(state),
      fd_(fd),
      peer_(peer),
      opened_ns_(now_ns()),
      number_(state.accepted.fetch_add(1, std::memory_order_relaxed)) {
  handshake_.start(state.key);
  add(state_.connections, 1);
}

Connection::~Connection() {
  write_pages_.clear();
  held_.clear();
  if (job_ != nullptr) job_->cancel();
  if (attached_) {
    session_->detach(channel_);
    address_->connections.give_back();
    state_.joined.fetch_sub(1, std::memory_order_relaxed);
    std::uint64_t one = 1;
    static_cast<void>(!::write(state_.keeper_event, &one, sizeof one));  // full only when it is awake anyway
  }
  ::close(fd_);
  state_.connections.fetch_sub(1, std::memory_order_relaxed);
}

bool Connection::drive() {
  if (!proved_ && !drive_handshake()) return false;
  if (!proved_) return true;
  if (waiting_ && !try_attach()) return false;
  if (waiting_) return true;
  if (discarding() && !discard_some()) return true;
  if (computes() && !take_results()) return flush();
  // Bounded, so that one busy client does not hold up the others of this thread; epoll reports what is left.
  for (int round = 0; round < 32; ++round) {
    if (!serve()) return false;
    if (!parts_.empty() || waiting_ || discarding() || computes()) return true;
    Received received = receive();
    if (received == Received::end) return false;
    if (received == Received::nothing) return true;
  }
  return serve();  // nothing complete may be left in the buffer: nobody would report it
}

// Serves what is in the buffer, until more bytes are needed, or the client must read first.
bool Connection::serve() {
  do {
    if (!flush()) return false;
    if (!parts_.empty()) return true;
    if (!parse()) {
      add(state_.connections_cut, 1);
      log::info("%s breaks the protocol: connection closed", far::to_string(peer_).c_str());
      return false;
    }
  } while (!parts_.empty());
  return true;
}

bool Connection::send_handshake() {
  while (!handshake_.output().empty()) {
    auto output = handshake_.output();
    iovec part{const_cast<std::byte*>(output.data()), output.size()};
    std::int64_t n = send_some(fd_, {&part, 1});
    if (n == -EAGAIN) return true;
    if (n < 0) return false;
    handshake_.sent(static_cast<std::size_t>(n));
  }
  return true;
}

void Connection::refused(const char* why) {
  add(state_.handshakes_refused, 1);
  log::info("refused %s: it %s", far::to_string(peer_).c_str(), why);
}

bool Connection::drive_handshake() {
  for (;;) {
    if (!send_handshake()) return false;
    auto input = handshake_.input();
    iovec part{input.data(), input.size()};
    std::int64_t n = receive_some(fd_, {&part, 1});
    if (n == -EAGAIN) return true;
    if (n <= 0) {
      if (handshake_.introduced()) refused("went when it had seen the proof of the key: its own is another");
      return false;
    }
    switch (handshake_.received(static_cast<std::size_t>(n))) {
      case Step::more:
        break;
      case Step::done:
        proved_ = true;
        return send_handshake();
      case Step::failed:
        refused(handshake_.failure());  // before the answer: who was refused finds itself counted
        send_handshake();
        return false;
    }
  }
}

bool Connection::flush() {
  while (parts_sent_ < parts_.size()) {
    std::int64_t n = send_some(fd_, std::span(parts_).subspan(parts_sent_));
    if (n == -EAGAIN) return true;
    if (n < 0) return false;
    for (auto left = static_cast<std::size_t>(n); left > 0;) {
      iovec& part = parts_[parts_sent_];
      std::size_t size = std::min(left, part.iov_len);
      part = {static_cast<char*>(part.iov_base) + size, part.iov_len - size};
      left -= size;
      if (part.iov_len == 0) ++parts_sent_;
    }
  }
  parts_.clear();
  parts_sent_ = replies_used_ = 0;
  held_.clear();
  results_.reset();
  return true;
}

Connection::Received Connection::receive() {
  if (first_ > 0) std::memmove(buffer_.data(), buffer_.data() + first_, end_ - first_);
  end_ -= first_;
  first_ = 0;
  std::array<iovec, far::wire::kPagesMax + 1> parts;
  std::size_t used = 0, direct = 0;
  for (std::size_t i = write_have_ / kPageSize, skip = write_have_ % kPageSize; i < write_targets_.size(); ++i) {
    std::byte* target = write_targets_[i] + skip;
    std::size_t size = kPageSize - skip;
    skip = 0;
    direct += size;
    bool adjacent = used > 0 && static_cast<std::byte*>(parts[used - 1].iov_base) + parts[used - 1].iov_len == target;
    if (adjacent)
      parts[used - 1].iov_len += size;
    else
      parts[used++] = {target, size};
  }
  parts[used++] = {buffer_.data() + end_, buffer_.size() - end_};
  std::int64_t n = receive_some(fd_, std::span(parts).first(used));
  if (n == -EAGAIN) return Received::nothing;
  if (n <= 0) return Received::end;
  std::size_t bytes = static_cast<std::size_t>(n), in_place = std::min(bytes, direct);
  end_ += bytes - in_place;
  if (in_place > 0) written(in_place);
  return Received::bytes;
}

// Takes complete messages off the buffer until more bytes, or room for replies, are needed.
bool Connection::parse() {
  while (first_ < end_ && !waiting_ && !discarding() && !computes()) {
    if (!write_targets_.empty()) {
      first_ += take_from_buffer();
      continue;
    }
    if (!room_for_replies()) return true;
    std::span<const std::byte> bytes(buffer_.data() + first_, end_ - first_);
    if (bytes.size() < sizeof(Header)) return true;
    Header request;
    if (far::wire::parse_request(bytes, &request) != Fault::none) return false;
    std::size_t list = far::wire::list_bytes(request);
    if (bytes.size() < sizeof request + list) return true;
    first_ += sizeof request + list;
    if (!on_request(request, bytes.subspan(sizeof request, list))) return false;
  }
  return true;
}

}  // namespace hinterland
