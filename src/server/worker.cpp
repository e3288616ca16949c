#include "server/worker.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"
#include "base/log.hpp"

namespace hinterland {

Worker::~Worker() {
  members_.clear();
  handed_.clear();
  if (epoll_ >= 0) ::close(epoll_);
  if (event_ >= 0) ::close(event_);
}

Status Worker::prepare(ServerState& state, int listener, std::span<const std::unique_ptr<Worker>> all) {
  state_ = &state;
  all_ = all;
  listener_ = listener;
  const ServerOptions& limits = state.options;
  strangers_ = Strangers({limits.handshakes_max, limits.strangers_max(), limits.handshakes_a_second_max});
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  event_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (epoll_ < 0 || event_ < 0) return std::unexpected(Error::make(errno, "cannot set up a serving thread"));
  for (int fd : {event_, listener_}) {
    if (fd < 0) continue;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = fd == event_ ? &event_ : &listener_;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0)
      return std::unexpected(Error::make(errno, "cannot watch a socket"));
  }
  return {};
}

void Worker::stop() {
  stopping_.store(true);
  std::uint64_t one = 1;
  static_cast<void>(!::write(event_, &one, sizeof one));  // full only when the thread is awake anyway
}

void Worker::hand_over(std::unique_ptr<Connection> connection) {
  {
    LockGuard lock(handed_mutex_);
    handed_.push_back(std::move(connection));
  }
  std::uint64_t one = 1;
  static_cast<void>(!::write(event_, &one, sizeof one));
}

void Worker::run() {
  std::array<epoll_event, 64> events;
  std::uint64_t spin_until = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    std::uint64_t now = now_ns();
    int count =
        ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), now < spin_until ? 0 : timeout_ms(now));
    now = now_ns();
    for (int i = 0; i < count; ++i) {
      void* what = events[static_cast<std::size_t>(i)].data.ptr;
      if (what == &event_) {
        take_handed_over();
        drive_computed();
      } else if (what == &listener_) {
        accept_all(now);
      } else {
        auto* member = static_cast<Member*>(what);
        constexpr std::uint32_t kGone = EPOLLHUP | EPOLLERR | EPOLLRDHUP;
        if (member->computing && (events[static_cast<std::size_t>(i)].events & kGone) != 0 && !member->closed)
          close(member);  // nobody waits for the results
        else
          drive(member);
        spin_until = may_spin(*member) ? now + kSpinNs : 0;
      }
    }
    if (listener_ >= 0) tick(now);
    if (burials_) bury();
  }
}

int Worker::timeout_ms(std::uint64_t now) const {
  if (waiting_ > 0) return 1;
  if (newcomers_ > 0) return 100;
  std::uint64_t due = sessions_due_ns_;
  if (accept_paused_until_ns_ != 0 && (due == 0 || accept_paused_until_ns_ < due)) due = accept_paused_until_ns_;
  if (due == 0) return -1;
  return due <= now ? 0 : static_cast<int>(std::min<std::uint64_t>((due - now) / 1'000'000 + 1, 60'000));
}

void Worker::listen_again(bool on) {
  epoll_event event{};
  event.events = on ? static_cast<std::uint32_t>(EPOLLIN) : 0u;
  event.data.ptr = &listener_;
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, listener_, &event);
}

void Worker::accept_all(std::uint64_t now) {
  for (int accepted = 0; accepted < kAcceptedMax; ++accepted) {
    far::Endpoint peer;
    peer.length = sizeof peer.address;
    int fd =
        ::accept4(listener_, reinterpret_cast<sockaddr*>(&peer.address), &peer.length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      admit(fd, peer, now);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return;
    // Out of descriptors or memory: those that wait stay waiting, instead of being reported again and again.
    log::warning("cannot accept a connection (errno %d): waiting; a higher limit (ulimit -n) helps", errno);
    accept_paused_until_ns_ = now + kAcceptPauseNs;
    return listen_again(false);
  }
}

void Worker::admit(int fd, const far::Endpoint& peer, std::uint64_t now) {
  PeerAddress address = PeerAddress::of(peer);
  if (!admit_stranger(address, now)) {
    add(state_->handshakes_refused, 1);
    far::close_at_once(fd);
    return;
  }
  far::set_stream_options(fd);
  auto member = std::make_unique<Member>();
  member->address = address;
  member->connection = std::make_unique<Connection>(*state_, fd, peer);
  if (!watch(member.get())) return;
  count(member.get(), true, false);
  strangers_.add(member.get(), now);
  state_->strangers.store(strangers_.count(), std::memory_order_relaxed);
  members_.push_back(std::move(member));
}

bool Worker::admit_stranger(const PeerAddress& address, std::uint64_t now) {
  // Those that have a proof and do not join are key holders; this bounds them.
  const ServerOptions& limits = state_->options;
  std::uint64_t descriptors = std::uint64_t{limits.connections_max} + limits.strangers_max();
  if (state_->connections.load(std::memory_order_relaxed) >= descriptors) return false;
  Strangers::Verdict verdict = strangers_.judge(address, now);
  if (verdict != Strangers::Verdict::make_room) return verdict == Strangers::Verdict::come;
  Stranger* stranger = strangers_.candidate(address, now);
  if (stranger == nullptr) return false;
  add(state_->handshakes_refused, 1);
  close(static_cast<Member*>(stranger));
  return true;
}

// After it was driven.
void Worker::look_at_stranger(Member* member) {
  if (!member->counted) return;
  member->introduced = member->connection->introduced();
  if (!member->connection->proved()) return;
  strangers_.remove(member, true);
  state_->strangers.store(strangers_.count(), std::memory_order_relaxed);
}

bool Worker::watch(Member* member) {
  epoll_event event{};
  event.events = member->watching = EPOLLIN;
  event.data.ptr = member;
  member->connection->tell_at(event_);
  return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, member->connection->descriptor(), &event) == 0;
}

void Worker::take_handed_over() {
  std::uint64_t count = 0;
  static_cast<void>(!::read(event_, &count, sizeof count));
  std::vector<std::unique_ptr<Connection>> handed;
  {
    LockGuard lock(handed_mutex_);
    handed.swap(handed_);
  }
  for (auto& connection : handed) {
    auto member = std::make_unique<Member>();
    member->connection = std::move(connection);
    if (!watch(member.get())) continue;
    members_.push_back(std::move(member));
    drive(members_.back().get());  // what came meanwhile may be in its buffer
  }
  if (listener_ >= 0) sessions_due_ns_ = now_ns();  // maybe a session was deserted: look
}

void Worker::drive(Member* member) {
  if (member->closed) return;
  Connection& connection = *member->connection;
  bool was_newcomer = member->newcomer;
  if (!connection.drive()) return close(member);
  look_at_stranger(member);
  count(member, was_newcomer && !connection.joined(), connection.waiting());
  if (was_newcomer && !member->newcomer && settle(member)) return;
  // Also of one that has just joined: it may have asked for a lot already.
  if (connection.computes() && !member->computing) computing_.push_back(member);
  member->computing |= connection.computes();
  watch_for(member);
}

void Worker::watch_for(Member* member) {
  Connection& connection = *member->connection;
  std::uint32_t wanted = connection.wants_to_write() ? EPOLLOUT : connection.computes() ? EPOLLRDHUP : EPOLLIN;
  if (member->watching == wanted) return;
  epoll_event event{};
  event.events = member->watching = wanted;
  event.data.ptr = member;
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.descriptor(), &event);
}

// After the event was told, which does not say of which.
void Worker::drive_computed() {
  std::vector<Member*> all;
  all.swap(computing_);
  for (Member* member : all) {
    member->computing = false;
    drive(member);  // who still computes is put back
  }
}

// Who asked may share this CPU, and then cannot go on while it is spun on: a fault handler that makes way waits until
// nobody else wants to run (docs/adr/0024-one-fetch-then-a-look.md).
bool Worker::may_spin(const Member& member) {
  if (member.connection == nullptr) return true;
  return !member.connection->peer().is_loopback() || !far::was_received_here(member.connection->descriptor());
}

// A newcomer that has joined its session moves to the worker whose turn it is. False: it stays here.
bool Worker::settle(Member* member) {
  Worker& next = *all_[next_worker_++ % all_.size()];
  if (&next == this || member->connection->computes()) return false;  // its job tells this thread
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, member->connection->descriptor(), nullptr);
  next.hand_over(std::move(member->connection));
  member->closed = burials_ = true;
  return true;
}

void Worker::close(Member* member) {
  count(member, false, false);
  // A client that was quick has proved the key, said all it wanted and gone in one go.
  strangers_.remove(member, member->connection->proved());
  state_->strangers.store(strangers_.count(), std::memory_order_relaxed);
  member->connection.reset();
  member->closed = burials_ = true;
}

void Worker::count(Member* member, bool newcomer, bool waiting) {
  newcomers_ += static_cast<std::uint32_t>(newcomer) - static_cast<std::uint32_t>(member->newcomer);
  waiting_ += static_cast<std::uint32_t>(waiting) - static_cast<std::uint32_t>(member->waiting);
  member->newcomer = newcomer;
  member->waiting = waiting;
}

void Worker::bury() {
  std::erase_if(computing_, [](const Member* member) { return member->closed; });
  std::erase_if(members_, [](const auto& member) { return member->closed; });
  burials_ = false;
}

void Worker::tick(std::uint64_t now) {
  if (newcomers_ > 0) tick_newcomers(now);
  if (accept_paused_until_ns_ != 0 && now >= accept_paused_until_ns_) {
    accept_paused_until_ns_ = 0;
    listen_again(true);
  }
  if (sessions_due_ns_ != 0 && now >= sessions_due_ns_)
    sessions_due_ns_ = state_->sessions->end_deserted(now, state_->options.resume_grace_ns);
}

void Worker::tick_newcomers(std::uint64_t now) {
  if (now < newcomers_due_ns_) return;
  newcomers_due_ns_ = now + 1'000'000;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Member* member = members_[i].get();
    if (member->closed || !member->newcomer) continue;
    if (member->connection->opened_ns() + state_->options.handshake_ns < now) {
      add(state_->handshakes_refused, 1);
      log::info("%s did not introduce itself in time: connection closed",
                far::to_string(member->connection->peer()).c_str());
      close(member);
    } else if (member->connection->waiting()) {
      drive(member);
    }
  }
}

}  // namespace hinterland
