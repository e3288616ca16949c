// One connection of a client to its server, from connect() to the point where requests can be sent. Non-blocking.
//
// The descriptor keeps its number over reconnects, so that whoever protects it from the program needs no telling.
#pragma once

#include <cstdint>
#include <utility>

#include "far/tcp/handshake.hpp"
#include "far/tcp/socket.hpp"

namespace hinterland::far {

class Link {
 public:
  Link() = default;
  ~Link() { close_descriptor(); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Starts a fresh connection (dropping the old one). 0 or -errno with failure(). `key` must outlive the link.
  int start(const Endpoint& endpoint, const SecretKey& key, wire::Type session, const wire::SessionRequest& request);
  // Does what can be done without waiting. 1: ready for requests; 0: not yet; -errno with failure().
  int drive();
  // start() was called: drives until ready or `deadline_ns` (now_ns() clock). Blocks. 0 or -errno with failure().
  int drive_until(std::uint64_t deadline_ns);

  bool ready() const { return stage_ == Stage::ready; }
  bool starting() const { return stage_ == Stage::connecting || stage_ == Stage::handshake; }
  bool wants_to_write() const;
  int descriptor() const { return descriptor_; }
  const wire::HandshakeFailure& failure() const { return failure_; }
  const wire::SessionReply& session() const { return handshake_.session(); }

  // Ends the connection for both sides; the number stays taken.
  void drop();
  // Hands the descriptor over to the caller; the next connection gets another number.
  int release() {
    stage_ = Stage::down;
    return std::exchange(descriptor_, -1);
  }
  // In a forked child: lets go of the parent's descriptor without touching the parent's connection.
  void close_descriptor();

 private:
  enum class Stage : std::uint8_t { down, connecting, handshake, ready };
  int fail(int code, const char* what, const char* remedy = "");
  int drive_handshake();
  int descriptor_ = -1;
  Stage stage_ = Stage::down;
  wire::ClientHandshake handshake_;
  wire::HandshakeFailure failure_;
};

}  // namespace hinterland::far
