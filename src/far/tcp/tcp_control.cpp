// TcpDevice: the control connection. Requests one at a time, with their retries; and what is given back, for which
// nobody waits.
#include <cerrno>

#include "base/clock.hpp"
#include "far/tcp/blocking_io.hpp"
#include "far/tcp/tcp_device.hpp"

namespace hinterland::far {
namespace {

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

// What the connection takes now of the bytes up to `end`. Bytes, 0 when there are none, or -errno.
std::int64_t TcpDevice::send_give_backs_locked(std::uint64_t end) {
  std::array<std::byte, 4096> copy;
  std::span<const std::byte> bytes;
  {
    LockGuard lock(give_backs_mutex_);
    bytes = give_backs_.next_bytes(end, copy);
  }
  if (bytes.empty()) return 0;
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  std::int64_t n = send_some(control_.descriptor(), {&part, 1});
  LockGuard lock(give_backs_mutex_);
  if (n > 0) give_backs_.sent(static_cast<std::size_t>(n));
  return n;
}

// A whole header that has come. 0 or -errno; -EAGAIN: not yet.
int TcpDevice::receive_reply_locked(wire::Header* reply) {
  while (reply_have_ < reply_.size()) {
    iovec part{reply_.data() + reply_have_, reply_.size() - reply_have_};
    std::int64_t n = receive_some(control_.descriptor(), {&part, 1});
    if (n <= 0) return n == 0 ? -ECONNRESET : static_cast<int>(n);
    reply_have_ += static_cast<std::size_t>(n);
  }
  reply_have_ = 0;
  return wire::parse_reply(reply_, reply) == wire::Fault::none ? 0 : -EPROTO;
}

// A reply that nobody waits for.
bool TcpDevice::is_expected_locked(const wire::Header& reply) {
  if (is_reply_to_tell(reply)) return true;
  LockGuard lock(give_backs_mutex_);
  return give_backs_.answered(reply);
}

int TcpDevice::exchange_locked(const wire::Header& request, std::uint64_t give_backs_end, wire::Header* reply,
                               std::uint64_t deadline_ns) {
  int fd = control_.descriptor();
  for (std::int64_t n = 1; n != 0;) {
    n = send_give_backs_locked(give_backs_end);
    if (n == -EAGAIN) n = wait_for(fd, POLLOUT, deadline_ns) == 0 ? 1 : -ETIMEDOUT;
    if (n < 0) return static_cast<int>(n);
  }
  if (int result = send_all(fd, wire::bytes_of(request), deadline_ns); result != 0) return result;
  for (;;) {
    int result = receive_reply_locked(reply);
    if (result == -EAGAIN)
      result = wait_for(fd, POLLIN, deadline_ns);
    else if (result == 0 && reply->id == request.id && reply->type == (request.type | wire::kReplyBit))
      break;
    else if (result == 0 && !is_expected_locked(*reply))
      result = -EPROTO;
    if (result != 0) return result;
  }
  return reply->count == request.count ? 0 : -EPROTO;
}

void TcpDevice::connected_anew_locked() {
  reply_have_ = 0;
  LockGuard lock(give_backs_mutex_);
  give_backs_.begin_again();
}

std::expected<wire::Header, int> TcpDevice::call_locked(wire::Type type) {
  GiveBacks::Turn turn;
  {
    LockGuard lock(give_backs_mutex_);
    turn = give_backs_.take_turn();
  }
  // The same id both times: the server recognises a request it has done already and only repeats its answer.
  wire::Header request = wire::make_request(type, 0, turn.id), reply;
  std::uint64_t start = now_ns();
  int result = control_.ready() ? exchange_locked(request, turn.end, &reply, start + timeout_ns_) : -ENOTCONN;
  for (bool retried = false; result != 0 && (!retried || may_pass(-result)); retried = true) {
    // What the program has closed says nothing of the server: that has its own time.
    if (is_of_this_process(-result)) start = now_ns();
    std::uint64_t deadline = start + timeout_ns_ + kRetryNs;
    int joined = 0;
    if (control_.ready() && retried)
      joined = broke(control_, -result, reason(-result), deadline);
    else if (control_.ready())
      drop(control_);
    // One that settle() has begun is gone on with: two at the same time would be in each other's way at the server.
    if (joined == 0 && !control_.starting())
      joined = connect(control_, wire::Type::session_join, control_channel_, deadline);
    if (joined != 0 || drive_to_end(control_) != 0) {
      lose(control_.failure());
      return std::unexpected(lost());
    }
    connected_anew_locked();
    count_reconnect();
    result = exchange_locked(request, turn.end, &reply, deadline);
  }
  if (result == 0) return reply;
  drop(control_);
  lose(-result, reason(-result));
  return std::unexpected(lost());
}

// --- giving back --------------------------------------------------------------------------------------------------

void TcpDevice::release_slab(std::uint32_t slab) {
  if (slab >= pages_.slabs_max() || lost() != 0) return;
  pages_.let_go(slab);
  {
    LockGuard lock(give_backs_mutex_);
    give_backs_.release_slab(slab);
  }
  tell_give_backs();
}

void TcpDevice::discard(std::span<const FarPage> pages) {
  {
    LockGuard lock(give_backs_mutex_);
    for (FarPage page : pages) {
      if (!pages_.contains(page)) continue;
      pages_.clear(page);
      give_backs_.discard(page);
    }
  }
  tell_give_backs();
}

bool TcpDevice::nothing_untold() {
  LockGuard lock(give_backs_mutex_);
  return give_backs_.all_sent();
}

bool TcpDevice::has_marks() {
  LockGuard lock(give_backs_mutex_);
  return give_backs_.has_marks();
}

// Who has the connection now does it when he is done with it: each looks again after he let go.
void TcpDevice::tell_give_backs() {
  while (lost() == 0 && !nothing_untold() && control_mutex_.try_lock()) {
    bool all = tell_give_backs_locked();
    control_mutex_.unlock();
    if (!all) return;  // settle() goes on
  }
}

bool TcpDevice::tell_give_backs_locked() {
  if (!control_.ready()) return false;
  for (;;) {
    if (!take_answers_locked()) return false;
    std::uint64_t end;
    {
      LockGuard lock(give_backs_mutex_);
      give_backs_.refill();
      if (give_backs_.all_sent()) return true;
      end = give_backs_.end();
    }
    std::int64_t n = send_give_backs_locked(end);
    if (n < 0 && n != -EAGAIN) drop(control_);
    if (n <= 0) return false;
  }
}

// False when the connection is broken, or brings what nobody asked for: then it is dropped.
bool TcpDevice::take_answers_locked() {
  for (;;) {
    wire::Header reply;
    int result = receive_reply_locked(&reply);
    if (result == -EAGAIN) return true;
    if (result == 0 && is_expected_locked(reply)) continue;
    drop(control_);
    return false;
  }
}

// A connection that broke while slabs were given back. In steps, which do not wait.
bool TcpDevice::reconnect_locked() {
  int result = 0;
  if (!control_.starting())
    result = connect(control_, wire::Type::session_join, control_channel_, now_ns() + timeout_ns_);
  if (result == 0) result = drive(control_);
  if (result < 0) lose(control_.failure());
  if (result <= 0) return false;
  connected_anew_locked();
  count_reconnect();
  return true;
}

bool TcpDevice::settle() {
  if (lost() != 0) return false;
  if (control_mutex_.try_lock()) {
    if (control_.ready() || reconnect_locked()) tell_give_backs_locked();
    control_mutex_.unlock();
  }
  LockGuard lock(give_backs_mutex_);
  return lost() == 0 && !give_backs_.all_answered();
}

}  // namespace hinterland::far
