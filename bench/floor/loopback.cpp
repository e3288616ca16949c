#include "floor/loopback.hpp"

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "floor/calls.hpp"
#include "floor/store.hpp"

namespace hinterland::bench {
namespace {

// As large as on the wire of `tcp:`: a header of 32 bytes, with the number of one page behind it, or with the page.
struct Request {
  std::array<std::byte, 32> header;
  std::uint64_t page;
};
struct Reply {
  std::array<std::byte, 32> header;
  std::array<std::byte, kPageSize> page;
};
static_assert(sizeof(Request) == 40 && sizeof(Reply) == 32 + kPageSize);

constexpr std::size_t kStreamPages = 32;
constexpr int kCollapse = 25;  // MADV_COLLAPSE (Linux 6.1), which libc may not have yet

struct Shape {
  const char* name;
  bool other_cpu;           // the server runs on the second CPU, not on the client's
  bool spinning;            // both sides poll, and never sleep
  std::size_t pending;      // requests on the way
  bool random;              // order of the pages
  bool zero_copy = false;   // the server sends its pages themselves (MSG_ZEROCOPY)
  bool huge_pages = false;  // which lie in huge pages
};

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {
    if (descriptor < 0) fail("a socket", errno);
  }
  ~Socket() { close(descriptor_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int descriptor() const { return descriptor_; }
  void no_delay() {
    int on = 1;
    if (setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("TCP_NODELAY", errno);
  }
  // What there is, 0 at the end of the connection. Waits for the first byte.
  std::size_t receive(void* target, std::size_t bytes, bool spinning) {
    constexpr int kLooksInARow = 4096;  // about a millisecond; then the other end may be waiting for this CPU
    for (int looks = 1;; ++looks) {
      if (looks % kLooksInARow == 0) sched_yield();
      ssize_t got = recv(descriptor_, target, bytes, spinning ? MSG_DONTWAIT : 0);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR && !(spinning && errno == EAGAIN)) fail("receiving on loopback", errno);
    }
  }
  void send_without_copies() {
    int on = 1;
    if (setsockopt(descriptor_, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) != 0) throw Unavailable("no SO_ZEROCOPY");
    zero_copy_ = true;
  }
  void send_all(std::span<iovec> parts) {
    while (!parts.empty()) {
      msghdr message{};
      message.msg_iov = parts.data();
      message.msg_iovlen = parts.size();
      ssize_t sent = sendmsg(descriptor_, &message, MSG_NOSIGNAL | (zero_copy_ ? MSG_ZEROCOPY : 0));
      if (zero_copy_) gather_notes();
      if (sent < 0 && (errno == EINTR || (zero_copy_ && errno == ENOBUFS))) continue;
      if (sent < 0) fail("sending on loopback", errno);
      parts = rest_of(parts, static_cast<std::size_t>(sent));
    }
  }
  void end_sending() { shutdown(descriptor_, SHUT_WR); }

 private:
  // What the kernel says when it is done with pages; unread, it counts against what may be sent.
  void gather_notes() const {
    int saved_errno = errno;
    std::array<std::byte, 256> control;
    msghdr note{};
    do {
      note.msg_control = control.data();
      note.msg_controllen = control.size();
    } while (recvmsg(descriptor_, &note, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0);
    errno = saved_errno;
  }
  static std::span<iovec> rest_of(std::span<iovec> parts, std::size_t sent) {
    while (!parts.empty() && sent >= parts.front().iov_len) {
      sent -= parts.front().iov_len;
      parts = parts.subspan(1);
    }
    if (sent > 0) {
      parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + sent;
      parts.front().iov_len -= sent;
    }
    return parts;
  }
  int descriptor_;
  bool zero_copy_ = false;
};

// Both ends of one connection over 127.0.0.1.
struct Connection {
  Connection() : Connection(Socket(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))) {}

  Socket client, server;

 private:
  explicit Connection(const Socket& listener)
      : client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), server(joined(listener, client)) {
    client.no_delay();
    server.no_delay();
  }
  static int joined(const Socket& listener, const Socket& client) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener.descriptor(), generic, length) != 0 || listen(listener.descriptor(), 1) != 0 ||
        getsockname(listener.descriptor(), generic, &length) != 0)
      fail("listening on loopback", errno);
    if (connect(client.descriptor(), generic, length) != 0) fail("connecting on loopback", errno);
    return accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC);
  }
};

// Answers requests out of the store until the client ends: all that have arrived, with one sendmsg, no copy of ours.
class PageServer {
 public:
  PageServer(Socket& socket, const Mapping& store, const Shape& shape)
      : socket_(socket), store_(store), spinning_(shape.spinning), thread_([this, shape] { serve(shape); }) {}
  ~PageServer() { thread_.join(); }
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  void check() const {
    if (failed_.load()) throw Failed("the server's side of the loopback connection failed");
  }

 private:
  void serve(const Shape& shape) {
    try {
      pin_to(processors()[shape.other_cpu ? 1 : 0]);
      while (answer_what_came()) continue;
    } catch (const Failed&) {
      failed_.store(true);
    }
    socket_.end_sending();  // the client hears of it
  }

  bool answer_what_came() {
    std::size_t got =
        socket_.receive(reinterpret_cast<std::byte*>(requests_.data()) + held_, sizeof requests_ - held_, spinning_);
    held_ += got;
    std::size_t whole = held_ / sizeof(Request);
    for (std::size_t i = 0; i < whole; ++i) {
      parts_[2 * i] = {requests_[i].header.data(), sizeof requests_[i].header};
      parts_[2 * i + 1] = {store_.page(requests_[i].page), kPageSize};
    }
    if (whole > 0) socket_.send_all(std::span(parts_).first(2 * whole));
    held_ -= whole * sizeof(Request);
    std::memmove(requests_.data(), requests_.data() + whole, held_);
    return got > 0;
  }

  Socket& socket_;
  const Mapping& store_;
  bool spinning_;
  std::array<Request, kStreamPages> requests_;
  std::size_t held_ = 0;  // bytes of requests_
  std::array<iovec, 2 * kStreamPages> parts_;
  std::atomic<bool> failed_ = false;
  std::thread thread_;  // last: it uses the others
};

// Keeps `pending` requests on the way, and looks at each page that comes.
class PageClient {
 public:
  PageClient(Socket& socket, std::size_t store_pages, const Shape& shape)
      : socket_(socket), store_pages_(store_pages), shape_(shape), replies_(shape.pending * sizeof(Reply)) {}

  double ns_per_page(double seconds) {
    double started = now_ns(), end = started + seconds * 1e9;
    std::size_t pages = 0;
    ask(shape_.pending - asked_);
    do {
      std::size_t came = take_replies();
      pages += came;
      ask(came);
    } while (now_ns() < end);
    return (now_ns() - started) / static_cast<double>(pages);
  }

 private:
  void ask(std::size_t count) {
    std::array<Request, kStreamPages> requests{};
    for (std::size_t i = 0; i < count; ++i) {
      next_ = shape_.random ? random_.below(store_pages_) : (next_ + 1) % store_pages_;
      requests[i].page = expected_[(first_ + asked_++) % kStreamPages] = next_;
    }
    iovec part{requests.data(), count * sizeof(Request)};
    if (count > 0) socket_.send_all({&part, 1});
  }

  // At least one, in the order asked for.
  std::size_t take_replies() {
    std::size_t whole = 0;
    while (whole == 0) {
      std::size_t got = socket_.receive(replies_.data() + held_, replies_.bytes() - held_, shape_.spinning);
      if (got == 0) throw Failed("the loopback connection ended early");
      held_ += got;
      whole = held_ / sizeof(Reply);
    }
    for (std::size_t i = 0; i < whole; ++i) {
      std::uint64_t number = 0;
      std::memcpy(&number, replies_.data() + i * sizeof(Reply) + offsetof(Reply, page), sizeof number);
      if (number != expected_[first_]) throw Failed("another page came over loopback than was asked for");
      first_ = (first_ + 1) % kStreamPages;
    }
    asked_ -= whole;
    held_ -= whole * sizeof(Reply);
    std::memmove(replies_.data(), replies_.data() + whole * sizeof(Reply), held_);
    return whole;
  }

  Socket& socket_;
  std::size_t store_pages_;
  Shape shape_;
  Mapping replies_;
  std::size_t held_ = 0;  // bytes of replies_
  std::array<std::uint64_t, kStreamPages> expected_{};
  std::size_t first_ = 0, asked_ = 0;  // of expected_: the oldest request on the way, and how many there are
  std::size_t next_ = 0;
  Random random_{1};
};

std::vector<double> fetch_over_loopback(const Shape& shape, const Settings& settings) {
  if (shape.other_cpu && processors().size() < 2) throw Unavailable("there is only one CPU");
  Mapping& store = filled_store(settings.total_bytes);
  if (shape.huge_pages && (madvise(store.data(), store.bytes(), MADV_HUGEPAGE) != 0 ||
                           madvise(store.data(), store.bytes(), kCollapse) != 0))
    throw Unavailable("the kernel makes no huge pages of the store (MADV_COLLAPSE)");
  Connection connection;
  if (shape.zero_copy) connection.server.send_without_copies();
  PageServer server(connection.server, store, shape);
  std::vector<double> values;
  try {
    PageClient client(connection.client, store.pages(), shape);
    client.ns_per_page(settings.seconds / 4);  // warms up
    for (int i = 0; i < settings.repeat; ++i) values.push_back(client.ns_per_page(settings.seconds));
  } catch (...) {
    shutdown(connection.client.descriptor(), SHUT_RDWR);
    server.check();
    throw;
  }
  shutdown(connection.client.descriptor(), SHUT_RDWR);  // replies still on the way are dropped
  return values;
}

constexpr Shape kShapes[] = {
    {"tcp/ping-pong/same-cpu", false, false, 1, true},
    {"tcp/ping-pong/other-cpu", true, false, 1, true},
    {"tcp/ping-pong/other-cpu-spinning", true, true, 1, true},
    {"tcp/stream-32/same-cpu", false, false, kStreamPages, false},
    {"tcp/stream-32/other-cpu", true, false, kStreamPages, false},
    {"tcp/stream-32/zero-copy/other-cpu", true, false, kStreamPages, false, true},
    // Last: the store stays in huge pages.
    {"tcp/stream-32/huge-pages/other-cpu", true, false, kStreamPages, false, false, true},
    {"tcp/ping-pong/huge-pages/other-cpu-spinning", true, true, 1, true, false, true},
};

}  // namespace

std::vector<Measurement> loopback_measurements() {
  std::vector<Measurement> list;
  for (const Shape& shape : kShapes)
    list.push_back(
        {shape.name, "ns/page", [shape](const Settings& settings) { return fetch_over_loopback(shape, settings); }});
  return list;
}

}  // namespace hinterland::bench
