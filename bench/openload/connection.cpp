#include "openload/connection.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>

#include "openload/values.hpp"

namespace openload {
namespace {

[[noreturn]] void lost(const char* what, int error) {
  throw std::runtime_error(std::string(what) + ": " + std::strerror(error) + " (what does the server say?)");
}

}  // namespace

Connection::Connection(const std::string& path) : descriptor_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (descriptor_ < 0) lost("a socket", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    close(descriptor_);
    throw std::runtime_error("--socket: the path is longer than a socket's may be");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  if (connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    int error = errno;
    close(descriptor_);
    lost(("connecting to " + path).c_str(), error);
  }
}

Connection::~Connection() { close(descriptor_); }

void Connection::queue_get(const Pending& pending) {
  append_get(pending.key, out_);
  pending_.push_back(pending);
}

void Connection::queue_set(const Pending& pending, std::string_view value) {
  append_set(pending.key, value, out_);
  pending_.push_back(pending);
}

void Connection::send_what_goes() {
  while (wants_to_send()) {
    ssize_t sent = send(descriptor_, out_.data() + sent_, out_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0 && errno != EINTR) lost("sending to the server", errno);
    if (sent > 0) sent_ += static_cast<std::size_t>(sent);
  }
  out_.clear();
  sent_ = 0;
}

void Connection::receive_what_came() {
  constexpr std::size_t kPiece = 64 * 1024;
  in_.erase(0, taken_);
  taken_ = 0;
  for (;;) {
    std::size_t held = in_.size();
    in_.resize(held + kPiece);
    ssize_t got = recv(descriptor_, in_.data() + held, kPiece, MSG_DONTWAIT);
    in_.resize(held + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got < 0 && errno == EAGAIN) return;
    if (got < 0 && errno != EINTR) lost("receiving from the server", errno);
    if (got == 0) lost("receiving from the server", ECONNRESET);
    if (got > 0 && static_cast<std::size_t>(got) < kPiece) return;
  }
}

// The reply at taken_: where it ends in in_, and its text. False when it has not come wholly.
bool Connection::parse(std::size_t& end, std::string_view& text) const {
  std::string_view rest = std::string_view(in_).substr(taken_);
  std::size_t line = rest.find("\r\n");
  if (line == std::string_view::npos) return false;
  std::string_view first = rest.substr(0, line);
  if (first[0] == '+') {
    text = first.substr(1);
    end = taken_ + line + 2;
    return true;
  }
  long bytes = -1;
  bool bulk = first[0] == '$' && std::from_chars(first.data() + 1, first.data() + line, bytes).ec == std::errc{};
  if (!bulk || bytes < 0) throw std::runtime_error("the server answered: " + std::string(first.substr(0, 100)));
  std::size_t whole = line + 2 + static_cast<std::size_t>(bytes) + 2;
  if (rest.size() < whole) return false;
  text = rest.substr(line + 2, static_cast<std::size_t>(bytes));
  end = taken_ + whole;
  return true;
}

bool Connection::next_reply(Pending& answered, std::string_view& text) {
  std::size_t end = 0;
  if (taken_ == in_.size() || !parse(end, text)) return false;
  if (pending_.empty()) throw std::runtime_error("the server answered what was not asked");
  answered = pending_.front();
  pending_.pop_front();
  taken_ = end;
  return true;
}

}  // namespace openload
