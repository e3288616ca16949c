// One serving thread: an epoll set and the connections in it.
//
// The first worker also accepts, sees newcomers through their handshake (the deadline and number of which are
// bounded: strangers.hpp), deals them out to all workers, and ends deserted sessions. A worker spins briefly after it
// had work, because the next request of a busy client comes sooner than a sleep and wake-up take; without work it
// sleeps.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.hpp"
#include "server/connection.hpp"
#include "server/strangers.hpp"

namespace hinterland {

class Worker {
 public:
  Worker() = default;
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // `listener` -1: not the first. `all`: whom to deal connections to; must outlive this.
  Status prepare(ServerState& state, int listener, std::span<const std::unique_ptr<Worker>> all);
  void run();
  void stop();  // async-signal-safe
  void hand_over(std::unique_ptr<Connection> connection);
  int event_descriptor() const { return event_; }

 private:
  struct Member : Stranger {
    std::unique_ptr<Connection> connection;
    bool newcomer = false, waiting = false;  // as counted below
    bool computing = false;                  // is in computing_
    bool closed = false;
    std::uint32_t watching = 0;  // events
  };
  static constexpr std::uint64_t kSpinNs = 50'000;  // less than a sleep and wake-up costs (ADR 0002)
  static constexpr std::uint64_t kAcceptPauseNs = 100'000'000;
  static constexpr int kAcceptedMax = 64;  // in one go: in between, those that are there are served

  int timeout_ms(std::uint64_t now) const;
  void accept_all(std::uint64_t now);
  void admit(int fd, const far::Endpoint& peer, std::uint64_t now);
  void take_handed_over();
  bool admit_stranger(const PeerAddress& address, std::uint64_t now);
  void look_at_stranger(Member* member);
  bool watch(Member* member);
  void drive(Member* member);
  void drive_computed();
  void watch_for(Member* member);
  static bool may_spin(const Member& member);
  bool settle(Member* member);
  void close(Member* member);
  void count(Member* member, bool newcomer, bool waiting);
  void tick(std::uint64_t now);
  void tick_newcomers(std::uint64_t now);
  void bury();
  void listen_again(bool on);

  ServerState* state_ = nullptr;
  std::span<const std::unique_ptr<Worker>> all_;
  int epoll_ = -1, event_ = -1, listener_ = -1;
  std::atomic<bool> stopping_{false};

  // Of the running thread only:
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<Member*> computing_;  // whose connection has a job under way, or had
  bool burials_ = false;            // closed members wait for the end of the round: events may still name them
  Strangers strangers_;
  std::uint32_t newcomers_ = 0;  // members that have not joined a session
  std::uint32_t waiting_ = 0;    // of these, the ones to be driven again soon
  std::uint32_t next_worker_ = 0;
  std::uint64_t newcomers_due_ns_ = 0;  // when to look at them again
  std::uint64_t accept_paused_until_ns_ = 0;
  std::uint64_t sessions_due_ns_ = 0;  // when a deserted session must be ended; 0: never

  Mutex handed_mutex_;
  std::vector<std::unique_ptr<Connection>> handed_;  // guarded by handed_mutex_
};

}  // namespace hinterland
