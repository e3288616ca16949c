#include "far/tcp/link.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"

namespace hinterland::far {

namespace {
constexpr const char* kCheckServer = "check that hinterland serve runs there";
}  // namespace

bool may_pass(int error) {
  switch (error) {
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case EAGAIN:         // of connect(): no port is free just now
    case EADDRNOTAVAIL:  // the same
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case EBADF:     // the program has closed it by a call that nobody sees
    case ENOTSOCK:  // the same, and has put a file of its own there
      return true;
    default:
      return false;
  }
}

int Link::fail(int code, const char* what, const char* remedy, bool passing) {
  failure_ = {code, what, remedy, 0, passing};
  return end_or_pause();
}

// 0 when there will be another attempt; else -errno of failure().
int Link::end_or_pause() {
  drop();
  if (!failure_.passing) return -failure_.code;
  std::uint64_t now = now_ns(), resume = now + backoff_.next_ns();
  if (resume >= deadline_ns_) return -failure_.code;
  resume_ns_ = resume;
  stage_ = Stage::pausing;
  return 0;
}

int Link::broke(int code, const char* what, std::uint64_t deadline_ns) {
  deadline_ns_ = std::max(deadline_ns_, deadline_ns);
  return fail(code, what, "", may_pass(code));
}

int Link::reserve_number(int descriptor) {
  int copy = numbers_.copy_beside(descriptor, kFirstHighDescriptor);
  if (copy < 0) return copy;
  descriptor_ = copy;
  return 0;
}

int Link::start(const Endpoint& endpoint, const SecretKey& key, wire::Type session,
                const wire::SessionRequest& request, std::uint64_t deadline_ns) {
  endpoint_ = endpoint;
  key_ = &key;
  session_ = session;
  request_ = request;
  deadline_ns_ = deadline_ns;
  failure_ = {};
  std::uint64_t seed = 0;
  randombytes_buf(&seed, sizeof seed);
  backoff_ = Backoff(seed);
  return connect();
}

// A connection under the link's number, or another high one. -errno; -EBADF: the program has closed it already.
int Link::start_high() {
  auto open = [this] { return ::socket(endpoint_.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); };
  const int fd = numbers_.open_high_once(open, descriptor_, kFirstHighDescriptor);
  if (fd < 0) return fd;
  const int error = start_connect(fd, endpoint_);
  if (error == 0) return fd;
  // Under the link's number it keeps that for the next attempt; what the program has put there is not ours to close.
  if (fd != descriptor_ && !is_of_this_process(-error)) ::close(fd);
  return error;
}

int Link::connect() {
  drop();
  int fd = start_high();
  if (fd == -EMFILE && descriptor_ >= 0) {
    // The program has used up its descriptors. The broken connection's makes room for the new one.
    close_descriptor();
    fd = start_high();
  }
  if (fd < 0) return fail(-fd, "cannot be reached", kCheckServer, may_pass(-fd));
  descriptor_ = fd;
  handshake_.start(*key_, session_, request_);
  stage_ = Stage::connecting;
  return 0;
}

bool Link::wants_to_write() const {
  return stage_ == Stage::connecting || (stage_ == Stage::handshake && !handshake_.output().empty());
}

int Link::drive() {
  if (stage_ == Stage::ready) return 1;
  if (stage_ == Stage::down) return -ENOTCONN;
  if (stage_ == Stage::pausing) {
    if (now_ns() < resume_ns_) return 0;
    if (int error = connect(); error != 0 || pausing()) return error;
  }
  if (stage_ == Stage::connecting) {
    pollfd writable{descriptor_, POLLOUT, 0};
    if (::poll(&writable, 1, 0) <= 0) return 0;
    if (int error = connect_error(descriptor_); error != 0)
      return fail(-error, "cannot be reached", kCheckServer, may_pass(-error));
    stage_ = Stage::handshake;
  }
  return drive_handshake();
}

int Link::drive_handshake() {
  for (;;) {
    if (auto output = handshake_.output(); !output.empty()) {
      iovec part{const_cast<std::byte*>(output.data()), output.size()};
      std::int64_t n = send_some(descriptor_, {&part, 1});
      if (n == -EAGAIN) return 0;
      if (n < 0) return fail(static_cast<int>(-n), "broke the connection off", "", may_pass(static_cast<int>(-n)));
      handshake_.sent(static_cast<std::size_t>(n));
      continue;
    }
    std::span<std::byte> input = handshake_.input();
    iovec part{input.data(), input.size()};
    std::int64_t n = receive_some(descriptor_, {&part, 1});
    if (n == -EAGAIN) return 0;
    if (n == 0)
      return fail(ECONNRESET, "closed the connection without an answer: not a hinterland server, or too busy",
                  "check host and port; a longer --timeout waits longer for a busy server", true);
    if (n < 0) return fail(static_cast<int>(-n), "broke the connection off", "", may_pass(static_cast<int>(-n)));
    switch (handshake_.received(static_cast<std::size_t>(n))) {
      case wire::Step::more:
        break;
      case wire::Step::done:
        stage_ = Stage::ready;
        return 1;
      case wire::Step::failed:
        failure_ = handshake_.failure();
        return end_or_pause();
    }
  }
}

int Link::drive_to_end() {
  for (;;) {
    int result = drive();
    if (result < 0) return result;
    if (result > 0) return 0;
    std::uint64_t now = now_ns(), until = pausing() ? resume_ns_ : deadline_ns_;
    if (now >= deadline_ns_) return late();
    pollfd waiting{descriptor_, static_cast<short>(wants_to_write() ? POLLIN | POLLOUT : POLLIN), 0};
    int milliseconds = until > now ? static_cast<int>((until - now) / 1'000'000) + 1 : 0;
    ::poll(&waiting, pausing() ? 0 : 1, milliseconds);
  }
}

// What earlier attempts were told says more than that the last one was not over.
int Link::late() {
  if (!failure_.passing) return fail(ETIMEDOUT, "does not answer", kCheckServer);
  drop();
  return -failure_.code;
}

void Link::drop() {
  bool is_socket =
      descriptor_ < 0 || !(connected() || ready()) || ::shutdown(descriptor_, SHUT_RDWR) == 0 || errno != ENOTSOCK;
  if (!is_socket) release();
  stage_ = Stage::down;
}

void Link::close_descriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  stage_ = Stage::down;
}

}  // namespace hinterland::far
