// TcpChannel: the connection, its failures and its time limits.
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"
#include "far/tcp/tcp_channel.hpp"

namespace hinterland::far {

void TcpChannel::push() {
  if (!link_.ready()) keep_connected();
  if (link_.ready()) send();
  check_time();
}

void TcpChannel::pump() {
  if (gone_) return;
  if (device_.lost() != 0) return give_up();
  if (!link_.ready()) keep_connected();
  if (link_.ready()) {
    recheck_pages();
    send();
    while (link_.ready() && receive()) {
    }
    // Pages that need another look, found just now.
    if (link_.ready() && recheck_first_ != kNone) {
      recheck_pages();
      send();
    }
  }
  check_time();
}

void TcpChannel::keep_connected() {
  if (!link_.starting()) {
    // The connection broke while nothing was asked of it. If it cannot be made again, that is the end.
    if (outbox_.empty()) return;
    return begun_ ? restart() : begin();
  }
  int result = device_.drive(link_);
  if (result < 0) {
    device_.lose(link_.failure());
    return give_up();
  }
  if (result > 0 && begun_) outbox_.retry_all();
  if (result > 0) begun_ = true;
  watch_socket(link_.wants_to_write());
}

void TcpChannel::send() {
  std::array<iovec, 256> parts;
  while (!outbox_.all_sent()) {
    std::size_t used = outbox_.gather(parts);
    std::int64_t n = send_some(link_.descriptor(), std::span(parts).first(used));
    if (n == -EAGAIN) return watch_socket(true);
    if (n < 0) return fail(static_cast<int>(-n), "broke the connection off");
    outbox_.advance(static_cast<std::size_t>(n));
    progress_ns_ = now_ns();  // a slow line is not a frozen server
  }
  watch_socket(false);
}

bool TcpChannel::receive() {
  std::array<iovec, wire::kPagesMax + 2> parts;
  std::uint16_t due = kNone;
  std::size_t used = offer(parts, &due);
  std::int64_t n = receive_some(link_.descriptor(), std::span(parts).first(used));
  if (n == -EAGAIN) return false;
  if (n == 0) {
    fail(ECONNRESET, "closed the connection");
    return false;
  }
  if (n < 0) {
    fail(static_cast<int>(-n), "broke the connection off");
    return false;
  }
  std::size_t room = 0;
  for (const iovec& part : std::span(parts).first(used)) room += part.iov_len;
  if (!take_in(static_cast<std::size_t>(n), due)) {
    fail(EPROTO, "sends garbage");
    return false;
  }
  return static_cast<std::size_t>(n) == room;  // less: the socket is empty now
}

void TcpChannel::fail(int code, const char* what) {
  // A descriptor that the program has closed says nothing of the server, and is no retry.
  bool closed_here = is_of_this_process(code);
  bool retrying = !closed_here && (link_.starting() || !outbox_.may_retry());
  if (closed_here) progress_ns_ = now_ns();
  device_.drop(link_);
  if (closed_here) renew_descriptors();
  if (gone_) return;
  watch_socket(false);
  reset_reader();
  if (outbox_.empty() && recheck_first_ == kNone) return;  // connected again when there is something to ask
  if (!retrying) return restart();
  if (may_pass(code) && device_.broke(link_, code, what, retry_deadline_ns_) == 0) return;
  // What earlier attempts were told says more than that the last one was not over.
  device_.lose(link_.failure().passing ? link_.failure() : wire::HandshakeFailure{code, what});
  give_up();
}

void TcpChannel::restart() {
  outbox_.retry_all();
  device_.count_reconnect();
  begin();
}

void TcpChannel::begin() {
  retry_deadline_ns_ = progress_ns_ + device_.timeout_ns() + kRetryNs;
  if (device_.connect(link_, wire::Type::session_join, channel_, retry_deadline_ns_) != 0) {
    device_.lose(link_.failure());
    return give_up();
  }
  watch_socket(link_.wants_to_write());
}

void TcpChannel::give_up() {
  device_.drop(link_);
  watch_socket(false);
  reset_reader();
  complete_everything(device_.lost());
  gone_ = true;
}

std::uint64_t TcpChannel::deadline_ns() const {
  bool retrying = !link_.ready() || !outbox_.may_retry();
  return retrying ? retry_deadline_ns_ : progress_ns_ + device_.timeout_ns();
}

// When something has to be done, whether the server answers or not.
std::uint64_t TcpChannel::wake_ns() const {
  std::uint64_t deadline = deadline_ns();
  return link_.pausing() ? std::min(deadline, link_.resume_ns()) : deadline;
}

void TcpChannel::replied() {
  progress_ns_ = now_ns();
  retry_deadline_ns_ = progress_ns_ + device_.timeout_ns();
}

void TcpChannel::check_time() {
  if (gone_) return;
  std::uint64_t now = now_ns();
  bool asking = !outbox_.empty() || recheck_first_ != kNone;
  if (asking && now >= deadline_ns()) {
    fail(ETIMEDOUT, "does not answer");
    if (gone_) return;
  }
  std::uint64_t wake = asking ? wake_ns() : 0;
  if (timer_ns_ == kFireAtOnce && done_count_ > 0) return;
  // Set anew when it fired, not at each progress: a system call a time limit, not one a request.
  if (timer_ns_ != 0 ? now >= timer_ns_ || (asking && wake < timer_ns_) : asking) set_timer(wake);
}

void TcpChannel::set_timer(std::uint64_t when_ns) {
  timer_ns_ = when_ns;
  if (!arm_timer()) renew_descriptors();
}

bool TcpChannel::arm_timer() {
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(timer_ns_ / 1'000'000'000u);
  when.it_value.tv_nsec = static_cast<long>(timer_ns_ % 1'000'000'000u);
  return ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr) == 0;
}

void TcpChannel::watch_socket(bool writable) {
  bool wanted = link_.ready() || link_.connected();
  if (wanted == watching_ && (!wanted || writable == watching_writable_)) return;
  int operation = !wanted ? EPOLL_CTL_DEL : watching_ ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  watching_ = wanted;
  watching_writable_ = writable;
  if (!tell_epoll(operation) && wanted) renew_descriptors();
}

bool TcpChannel::tell_epoll(int operation) {
  epoll_event event{};
  event.events = EPOLLIN | (watching_writable_ ? static_cast<std::uint32_t>(EPOLLOUT) : 0u);
  event.data.fd = link_.descriptor();
  return ::epoll_ctl(epoll_, operation, link_.descriptor(), &event) == 0;
}

// Under the old number where that is free, for it may have been given to poll(). -errno: no descriptor is to be had.
template <typename Open>
int TcpChannel::make_anew(Open open, int lost) {
  DescriptorSet& numbers = device_.open_descriptors();
  int wanted = is_open(lost) ? -1 : lost;  // if it is open, it is something of the program's now
  int fresh = numbers.open_high(open, wanted, kFirstHighDescriptor);
  if (fresh == lost) return fresh;
  numbers.remove(lost);
  numbers.add(fresh);
  return fresh;
}

void TcpChannel::renew_descriptors() {
  if (gone_) return;
  auto new_timer = [] { return ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC); };
  auto new_epoll = [] { return ::epoll_create1(EPOLL_CLOEXEC); };
  // A set or a timer that takes no orders is lost, too: the program has put a file of its own there.
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = timer_;
  if (!arm_timer()) timer_ = make_anew(new_timer, timer_);
  if (::epoll_ctl(epoll_, EPOLL_CTL_MOD, timer_, &event) != 0 &&
      ::epoll_ctl(epoll_, EPOLL_CTL_ADD, timer_, &event) != 0)
    epoll_ = make_anew(new_epoll, epoll_);
  if (timer_ < 0 || epoll_ < 0) {
    device_.lose(EMFILE, "was connected through descriptors that the program has closed, and others cannot be had");
    return give_up();
  }
  arm_timer();
  event.data.fd = timer_;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, timer_, &event);
  if (watching_ && !tell_epoll(EPOLL_CTL_MOD)) tell_epoll(EPOLL_CTL_ADD);
}

}  // namespace hinterland::far
