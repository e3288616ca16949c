#include "far/tcp/tcp_channel.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.hpp"
#include "base/clock.hpp"

namespace hinterland::far {

TcpChannel::TcpChannel(TcpDevice& device)
    : device_(device),
      link_(device.open_descriptors()),
      spill_(std::make_unique_for_overwrite<std::byte[]>(kSpillBytes)) {
  channel_ = device.next_channel_name();
}

TcpChannel::~TcpChannel() {
  if (link_.ready()) {  // said goodbye, the server need not wait for this connection to come back
    wire::Header leave = wire::make_request(wire::Type::leave, 0, 0);
    iovec part{&leave, sizeof leave};
    if (outbox_.all_sent()) send_some(link_.descriptor(), {&part, 1});
  }
  device_.channel_closed(this);
  for (int fd : {link_.descriptor(), epoll_, timer_}) device_.open_descriptors().remove(fd);
  if (epoll_ >= 0) ::close(epoll_);
  if (timer_ >= 0) ::close(timer_);
}

int TcpChannel::open_descriptors() {
  int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) return errno;
  epoll_ = device_.open_descriptors().move_high_beside(epoll, kFirstHighDescriptor);
  device_.open_descriptors().add(epoll_);
  int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (timer < 0) return errno;
  timer_ = device_.open_descriptors().move_high_beside(timer, kFirstHighDescriptor);
  device_.open_descriptors().add(timer_);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = timer_;
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, timer_, &event) != 0) return errno;
  // By the time of the first request the program may have used up its descriptors.
  if (int error = link_.reserve_number(epoll_); error != 0) return -error;
  device_.open_descriptors().add(link_.descriptor());
  return 0;
}

std::expected<std::unique_ptr<TcpChannel>, wire::HandshakeFailure> TcpChannel::open(TcpDevice& device) {
  std::unique_ptr<TcpChannel> channel(new TcpChannel(device));
  if (int error = channel->open_descriptors(); error != 0)
    return std::unexpected(wire::HandshakeFailure{error, "needs descriptors that this process cannot have",
                                                  "raise the limit: ulimit -n", 0});
  if (device.lost() != 0) {
    channel->gone_ = true;
    return channel;
  }
  if (device.is_of_forked_child()) return channel;  // it often asks for nothing
  // The others take their place while it costs nothing to be refused. Once pages are far, that would lose them.
  std::uint64_t deadline = now_ns() + device.timeout_ns();
  if (device.connect(channel->link_, wire::Type::session_join, channel->channel_, deadline) != 0 ||
      device.drive_to_end(channel->link_) != 0)
    return std::unexpected(channel->link_.failure());
  channel->begun_ = true;
  channel->watch_socket(false);
  return channel;
}

void TcpChannel::forget_closed_after_fork() {
  link_.forget_if_closed();
  if (!is_open(epoll_)) epoll_ = -1;
  if (!is_open(timer_)) timer_ = -1;
}

void TcpChannel::abandon_after_fork() {
  // Plain closes: the epoll set and the connection are shared with the parent and must stay as they are.
  gone_ = true;
  link_.close_descriptor();
  if (epoll_ >= 0) ::close(epoll_);
  if (timer_ >= 0) ::close(timer_);
  epoll_ = timer_ = -1;
}

int TcpChannel::submit(std::span<const Request> requests) {
  if (int lost = device_.lost(); lost != 0) return -lost;
  if (gone_) return -ENODEV;
  if (outbox_.empty()) progress_ns_ = now_ns();
  std::uint16_t message = kNone;
  std::size_t taken = 0;
  while (taken < requests.size() && in_flight_ < kPagesInFlightMax) take(requests[taken++], &message);
  if (message != kNone) seal(message);
  if (!outbox_.empty()) push();
  show_done();
  return static_cast<int>(taken);
}

void TcpChannel::take(const Request& request, std::uint16_t* message) {
  ++in_flight_;
  if (!request.valid() || !device_.pages().contains(request.page) || !device_.pages().holds(request.page.slab()))
    return complete(request.tag, EINVAL);
  std::uint64_t checksum = 0;
  if (request.operation == Operation::write) {
    checksum = SharedPages::checksum_of(request.buffer);
    device_.pages().set(request.page, checksum);
  } else {
    checksum = device_.pages().checksum(request.page);
    if (checksum == 0) return complete(request.tag, EIO);
    if (!request.whole()) {
      if (!device_.info().ranges) return complete(request.tag, EINVAL);
      checksum = 0;
    }
  }
  if (!outbox_.fits(*message, request)) {
    if (*message != kNone) seal(*message);
    *message = kNone;
  }
  *message = outbox_.add(*message, request, checksum);
  HL_CHECK(*message != kNone);  // there are as many slots and messages as requests in flight
}

void TcpChannel::seal(std::uint16_t message) {
  bool write = outbox_.message(message).operation == Operation::write;
  outbox_.seal(message, write ? device_.pages().take_stamp() : 0);
}

void TcpChannel::complete(std::uint64_t tag, int error) {
  done_[(done_first_ + done_count_++) % kPagesInFlightMax] = {tag, error};
}

void TcpChannel::complete_slot(std::uint16_t slot, int error) {
  complete(outbox_.slot(slot).tag, error);
  outbox_.free_slot(slot);
}

void TcpChannel::complete_everything(int error) {
  while (!outbox_.empty()) {
    std::uint16_t message = outbox_.oldest();
    while (outbox_.message(message).pages > 0) complete_slot(outbox_.take_page(message), error);
    outbox_.remove(message);
  }
  while (recheck_first_ != kNone) {
    std::uint16_t slot = recheck_first_;
    recheck_first_ = outbox_.slot(slot).next;
    complete_slot(slot, error);
  }
}

int TcpChannel::poll(std::span<Completion> completions) {
  // Also when nothing is in flight: the descriptor may be readable because the connection ended or a timer fired.
  if (done_count_ < completions.size()) pump();
  std::size_t given = 0;
  for (; given < completions.size() && done_count_ > 0; ++given, --done_count_) {
    completions[given] = done_[done_first_];
    done_first_ = (done_first_ + 1) % kPagesInFlightMax;
  }
  in_flight_ -= static_cast<std::uint32_t>(given);
  show_done();
  return static_cast<int>(given);
}

// Completions that wait in done_ must show on the descriptor, too: the timer is made to fire at once.
void TcpChannel::show_done() {
  if (timer_ < 0) return;
  if (done_count_ > 0 && timer_ns_ != kFireAtOnce) set_timer(kFireAtOnce);
  if (done_count_ == 0 && gone_ && timer_ns_ != 0) set_timer(0);
}

void TcpChannel::wait(std::uint64_t timeout_ns) {
  if (done_count_ > 0 || gone_) return;
  std::uint64_t start = now_ns();
  // Spin only where replies have been coming about that fast; otherwise spinning would only burn the time.
  if (in_flight_ > 0 && reply_time_ns_ < 2 * kSpinNs) {
    std::uint64_t limit = start + std::min(timeout_ns, kSpinNs);
    do {
      pump();
      if (done_count_ > 0) break;
    } while (now_ns() < limit);
  }
  std::uint64_t now = now_ns();
  if (done_count_ == 0 && now - start < timeout_ns) {
    std::uint64_t left = timeout_ns - (now - start);
    timespec limit{static_cast<time_t>(left / 1'000'000'000u), static_cast<long>(left % 1'000'000'000u)};
    pollfd waiting{epoll_, POLLIN, 0};
    ::ppoll(&waiting, 1, &limit, nullptr);
    if ((waiting.revents & POLLNVAL) != 0) renew_descriptors();
  }
  if (in_flight_ > 0) reply_time_ns_ = (7 * reply_time_ns_ + (now_ns() - start)) / 8;
}

}  // namespace hinterland::far
