// One connection of a client to its server, from connect() to the point where requests can be sent. Non-blocking.
//
// A server that is busy (it closes the connection, or has too many) is asked again, after pauses that grow, until the
// deadline, and so is one whose connection breaks before it has answered anything. What cannot end otherwise the next
// time, such as a wrong key, fails at once.
//
// The descriptor keeps its number over reconnects, so that whoever protects it from the program needs no telling.
#pragma once

#include <cstdint>
#include <utility>

#include "far/descriptor_set.hpp"
#include "far/tcp/backoff.hpp"
#include "far/tcp/handshake.hpp"
#include "far/tcp/socket.hpp"

namespace hinterland::far {

// What a connection may die of while the server is there. Nobody listening is not among it: a busy server still
// listens, and one that is gone has forgotten its sessions.
bool may_pass(int error);

class Link {
 public:
  ~Link() { close_descriptor(); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // New numbers are none of these, which must outlive the link.
  explicit Link(const DescriptorSet& numbers) : numbers_(numbers) {}
  // Takes a number for the connection that will be started when it is needed: a copy of `descriptor`. 0 or -errno.
  int reserve_number(int descriptor);
  // Starts a fresh connection (dropping the old one), which has to be ready at `deadline_ns` (now_ns() clock). 0 or
  // -errno with failure(). `key` must outlive the link.
  int start(const Endpoint& endpoint, const SecretKey& key, wire::Type session, const wire::SessionRequest& request,
            std::uint64_t deadline_ns);
  // The connection was ready, and broke with `code` before the server had answered: another attempt, after a pause,
  // within the deadline of start() or the later `deadline_ns`. 0, or -errno with failure() when there is no time
  // left.
  int broke(int code, const char* what, std::uint64_t deadline_ns);
  // Does what can be done without waiting. 1: ready for requests; 0: not yet; -errno with failure().
  int drive();
  // start() was called: drives until ready or its deadline. Blocks. 0 or -errno with failure().
  int drive_to_end();

  bool ready() const { return stage_ == Stage::ready; }
  bool starting() const { return pausing() || connected(); }
  bool connected() const { return stage_ == Stage::connecting || stage_ == Stage::handshake; }
  // Between two attempts: drive() does nothing before resume_ns(), and the descriptor says nothing.
  bool pausing() const { return stage_ == Stage::pausing; }
  std::uint64_t resume_ns() const { return resume_ns_; }
  bool wants_to_write() const;
  int descriptor() const { return descriptor_; }
  const wire::HandshakeFailure& failure() const { return failure_; }
  const wire::SessionReply& session() const { return handshake_.session(); }

  // Ends the connection for both sides; the number stays taken, unless something of the program's is there now.
  void drop();
  // Hands the descriptor over to the caller; the next connection gets another number.
  int release() {
    stage_ = Stage::down;
    return std::exchange(descriptor_, -1);
  }
  // In a forked child, before it opens anything: a number that the parent has lost may be another descriptor's soon.
  void forget_if_closed() {
    if (!is_open(descriptor_)) release();
  }
  // In a forked child: lets go of the parent's descriptor without touching the parent's connection.
  void close_descriptor();

 private:
  enum class Stage : std::uint8_t { down, pausing, connecting, handshake, ready };
  int connect();
  int start_high();
  int fail(int code, const char* what, const char* remedy = "", bool passing = false);
  int end_or_pause();
  int late();
  int drive_handshake();
  const DescriptorSet& numbers_;
  int descriptor_ = -1;
  Stage stage_ = Stage::down;
  wire::ClientHandshake handshake_;
  wire::HandshakeFailure failure_;

  // What start() was told, for further attempts.
  Endpoint endpoint_;
  const SecretKey* key_ = nullptr;
  wire::Type session_ = wire::Type::session_open;
  wire::SessionRequest request_{};
  std::uint64_t deadline_ns_ = 0, resume_ns_ = 0;
  Backoff backoff_;
};

}  // namespace hinterland::far
