// Sockets: the system call first; where it would block, the fiber waits for the edge.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>

#include "fiber/scheduler.hpp"
#include "hinterland/fiber.hpp"

namespace hl::fibers {

using hinterland::fiber::Poller;

struct stream_socket::state {
  const int descriptor;
  detail::spin_lock guard;         // of what follows: reader and writer may be the first at the same time
  std::shared_ptr<Poller> poller;  // it is registered there
  Poller::Descriptor* registered = nullptr;

  ~state() {
    leave_poller();
    ::close(descriptor);
  }
  void leave_poller() {
    if (registered != nullptr) poller->remove(descriptor, registered);
    registered = nullptr;
  }
  // With the poller of the fiber's run(). nullptr, and `*error`, when the kernel refuses.
  Poller::Descriptor* in(const std::shared_ptr<Poller>& current, int* error) {
    std::lock_guard lock(guard);
    if (registered != nullptr && poller == current) return registered;
    leave_poller();
    poller = current;
    *error = poller->add(descriptor, &registered);
    return registered;
  }
  // 0 when the system call is worth another try, else an errno.
  int wait(bool to_write) {
    detail::control* self = hinterland::fiber::current_fiber();
    if (self == nullptr) {
      pollfd ready{descriptor, static_cast<short>(to_write ? POLLOUT : POLLIN), 0};
      return ::poll(&ready, 1, -1) < 0 && errno != EINTR ? errno : 0;
    }
    int error = 0;
    Poller::Descriptor* edges = in(self->scheduler->poller(), &error);
    if (edges == nullptr) return error;
    (to_write ? edges->writable : edges->readable).wait();
    return 0;
  }
};

namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Address parse(const char* text, std::uint16_t port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.length = sizeof *v4;
  } else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.length = sizeof *v6;
  } else {
    throw std::system_error(EINVAL, std::generic_category(),
                            std::string("'") + text + "' is not an IP address; look names up before");
  }
  return address;
}

[[noreturn]] void fail(int error, const char* what, const char* address, std::uint16_t port) {
  throw std::system_error(error, std::generic_category(),
                          std::string("cannot ") + what + " " + address + " port " + std::to_string(port));
}

stream_socket stream(const Address& address) {
  int descriptor = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "cannot create a socket");
  return stream_socket(descriptor);
}

// A count, or -errno. Not inlined: to the compiler errno has one address for all of a function, but a fiber that has
// waited may be on another thread.
__attribute__((noinline)) std::ptrdiff_t outcome(std::ptrdiff_t result) {
  asm volatile("" ::: "memory");
  return result < 0 ? -errno : result;
}

// Small answers leave at once.
void no_delay(int descriptor) {
  int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

stream_socket::stream_socket(int descriptor) noexcept : state_(new state{descriptor, {}, {}}) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

stream_socket& stream_socket::operator=(stream_socket&& other) noexcept {
  if (this != &other) {
    close();
    state_ = std::exchange(other.state_, nullptr);
  }
  return *this;
}

stream_socket stream_socket::listen(const char* text, std::uint16_t port, int backlog) {
  Address address = parse(text, port);
  stream_socket listener = stream(address);
  int on = 1;
  setsockopt(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener.descriptor(), address.get(), address.length) != 0 ||
      ::listen(listener.descriptor(), backlog) != 0)
    fail(errno, "listen on", text, port);
  return listener;
}

stream_socket stream_socket::connect(const char* text, std::uint16_t port) {
  Address address = parse(text, port);
  stream_socket made = stream(address);
  auto error = static_cast<int>(-outcome(::connect(made.descriptor(), address.get(), address.length)));
  // Ready to be written means decided; but the edge may be an old one, and then it is not.
  while (error == EINPROGRESS || error == EALREADY || error == EINTR) {
    if (int refused = made.state_->wait(true); refused != 0) fail(refused, "wait for", text, port);
    pollfd decided{made.descriptor(), POLLOUT, 0};
    if (::poll(&decided, 1, 0) == 0) continue;
    socklen_t length = sizeof error;
    if (getsockopt(made.descriptor(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = EBADF;
  }
  if (error != 0) fail(error, "connect to", text, port);
  no_delay(made.descriptor());
  return made;
}

int stream_socket::descriptor() const noexcept { return state_ != nullptr ? state_->descriptor : -1; }

std::uint16_t stream_socket::port() const noexcept {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (getsockname(descriptor(), reinterpret_cast<sockaddr*>(&storage), &length) != 0) return 0;
  // At the same place in both families.
  if (storage.ss_family != AF_INET && storage.ss_family != AF_INET6) return 0;
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

stream_socket stream_socket::accept(int* error) noexcept {
  for (;;) {
    int failed = EBADF;
    if (state_ != nullptr) {
      std::ptrdiff_t made = outcome(::accept4(state_->descriptor, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (made >= 0) {
        no_delay(static_cast<int>(made));
        return stream_socket(static_cast<int>(made));
      }
      failed = static_cast<int>(-made);
      if (failed == EINTR || failed == ECONNABORTED) continue;
      if (failed == EAGAIN) failed = state_->wait(false);
      if (failed == 0) continue;
    }
    if (error != nullptr) *error = failed;
    return {};
  }
}

std::ptrdiff_t stream_socket::read(void* to, std::size_t size) noexcept {
  if (state_ == nullptr) return -EBADF;
  for (;;) {
    std::ptrdiff_t done = outcome(::read(state_->descriptor, to, size));
    if (done >= 0) return done;
    int error = static_cast<int>(-done);
    if (error == EINTR) continue;
    if (error == EAGAIN) error = state_->wait(false);
    if (error != 0) return -error;
  }
}

std::ptrdiff_t stream_socket::write(const void* from, std::size_t size) noexcept {
  if (state_ == nullptr) return -EBADF;
  for (;;) {
    std::ptrdiff_t done = outcome(::send(state_->descriptor, from, size, MSG_NOSIGNAL));
    if (done >= 0) return done;
    int error = static_cast<int>(-done);
    if (error == EINTR) continue;
    if (error == EAGAIN) error = state_->wait(true);
    if (error != 0) return -error;
  }
}

std::ptrdiff_t stream_socket::write_all(const void* from, std::size_t size) noexcept {
  std::size_t done = 0;
  while (done < size) {
    std::ptrdiff_t written = write(static_cast<const std::byte*>(from) + done, size - done);
    if (written < 0) return written;
    done += static_cast<std::size_t>(written);
  }
  return static_cast<std::ptrdiff_t>(size);
}

void stream_socket::shutdown() noexcept {
  if (state_ == nullptr) return;
  ::shutdown(state_->descriptor, SHUT_RDWR);
}

void stream_socket::close() noexcept { delete std::exchange(state_, nullptr); }

}  // namespace hl::fibers
