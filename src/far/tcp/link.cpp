#include "far/tcp/link.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.hpp"

namespace hinterland::far {

int Link::fail(int code, const char* what, const char* remedy) {
  failure_ = {code, what, remedy, 0};
  drop();
  return -code;
}

int Link::start(const Endpoint& endpoint, const SecretKey& key, wire::Type session,
                const wire::SessionRequest& request) {
  drop();
  int fd = start_connect(endpoint);
  if (fd == -EMFILE && descriptor_ >= 0) {
    // The program has used up its descriptors. The broken connection's makes room for the new one.
    close_descriptor();
    fd = start_connect(endpoint);
  }
  if (fd < 0) return fail(-fd, "cannot be reached", "check that hinterland serve runs there");
  descriptor_ = move_high(fd, descriptor_);
  handshake_.start(key, session, request);
  stage_ = Stage::connecting;
  return 0;
}

bool Link::wants_to_write() const {
  return stage_ == Stage::connecting || (stage_ == Stage::handshake && !handshake_.output().empty());
}

int Link::drive() {
  if (stage_ == Stage::ready) return 1;
  if (stage_ == Stage::down) return -ENOTCONN;
  if (stage_ == Stage::connecting) {
    pollfd writable{descriptor_, POLLOUT, 0};
    if (::poll(&writable, 1, 0) <= 0) return 0;
    if (int error = connect_error(descriptor_); error != 0)
      return fail(-error, "cannot be reached", "check that hinterland serve runs there");
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
      if (n < 0) return fail(static_cast<int>(-n), "broke the connection off");
      handshake_.sent(static_cast<std::size_t>(n));
      continue;
    }
    std::span<std::byte> input = handshake_.input();
    iovec part{input.data(), input.size()};
    std::int64_t n = receive_some(descriptor_, {&part, 1});
    if (n == -EAGAIN) return 0;
    if (n == 0)
      return fail(ECONNRESET, "closed the connection without an answer: not a hinterland server, or too busy",
                  "check host and port");
    if (n < 0) return fail(static_cast<int>(-n), "broke the connection off");
    switch (handshake_.received(static_cast<std::size_t>(n))) {
      case wire::Step::more:
        break;
      case wire::Step::done:
        stage_ = Stage::ready;
        return 1;
      case wire::Step::failed:
        failure_ = handshake_.failure();
        drop();
        return -failure_.code;
    }
  }
}

int Link::drive_until(std::uint64_t deadline_ns) {
  for (;;) {
    int result = drive();
    if (result < 0) return result;
    if (result > 0) return 0;
    std::uint64_t now = now_ns();
    if (now >= deadline_ns) return fail(ETIMEDOUT, "does not answer", "check that hinterland serve runs there");
    pollfd waiting{descriptor_, static_cast<short>(wants_to_write() ? POLLIN | POLLOUT : POLLIN), 0};
    ::poll(&waiting, 1, static_cast<int>((deadline_ns - now) / 1'000'000) + 1);
  }
}

void Link::drop() {
  if (descriptor_ >= 0) ::shutdown(descriptor_, SHUT_RDWR);
  stage_ = Stage::down;
}

void Link::close_descriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  stage_ = Stage::down;
}

}  // namespace hinterland::far
