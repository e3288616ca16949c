// One connection of a tcp: device for page reads and writes: pipelined, driven by poll(), never blocking.
//
// Requests submitted together leave in one sendmsg, straight from their buffers. Replies come straight into their
// buffers: replies mostly come in order, so each receive offers the buffers of the reply that is due; if another one
// comes, the bytes are gathered from there and handed out again.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "far/tcp/link.hpp"
#include "far/tcp/outbox.hpp"
#include "far/tcp/tcp_device.hpp"

namespace hinterland::far {

class TcpChannel final : public Channel {
 public:
  // Blocks until the connection has joined the device's session; in a forked child that happens with the first
  // request: one that asks for nothing, since it soon executes another program, takes no place at the server.
  static std::expected<std::unique_ptr<TcpChannel>, wire::HandshakeFailure> open(TcpDevice& device);
  ~TcpChannel() override;

  int submit(std::span<const Request> requests) override;
  int poll(std::span<Completion> completions) override;
  void wait(std::uint64_t timeout_ns) override;
  int event_descriptor() const override { return epoll_; }
  std::uint32_t in_flight() const override { return in_flight_; }

  // In a forked child, before anything is opened: numbers that the parent has lost are not ours.
  void forget_closed_after_fork();
  // In a forked child: lets go of the parent's descriptors. The channel is dead afterwards.
  void abandon_after_fork();

 private:
  static constexpr std::size_t kTailBytes = 4096;  // what may follow the reply that is due, in the same receive
  static constexpr std::size_t kSpillBytes = wire::kPagesMax * kPageSize + kTailBytes;
  static constexpr std::uint64_t kSpinNs =
      20'000;  // a sleep and wake-up costs more than this (docs/measurements/log.md)

  static constexpr std::uint64_t kFireAtOnce = 1;  // a time long past

  explicit TcpChannel(TcpDevice& device);
  int open_descriptors();

  // tcp_channel.cpp: requests, completions, sleeping
  void take(const Request& request, std::uint16_t* message);
  void seal(std::uint16_t message);
  void complete(std::uint64_t tag, int error);
  void complete_slot(std::uint16_t slot, int error);
  void complete_everything(int error);
  void show_done();

  // tcp_channel_io.cpp: the connection
  void push();            // what submit() needs: connect and send, but receive nothing
  void pump();            // everything that can be done without waiting
  void keep_connected();  // moves a connection that is being made
  void send();
  bool receive();  // true: there may be more
  void fail(int code, const char* what);
  void give_up();
  void begin();
  void restart();
  void check_time();
  std::uint64_t deadline_ns() const;
  std::uint64_t wake_ns() const;
  void set_timer(std::uint64_t when_ns);  // 0: off
  void replied();                         // a page, or the end of a message
  void watch_socket(bool writable);
  bool tell_epoll(int operation);
  bool arm_timer();
  // What the program has closed by calls that nobody sees is made anew. The connection is, when it is needed.
  void renew_descriptors();
  template <typename Open>
  int make_anew(Open open, int lost);

  // tcp_channel_reader.cpp: bytes into pages
  std::size_t offer(std::span<iovec> parts, std::uint16_t* due);
  bool take_in(std::size_t bytes, std::uint16_t due);
  bool on_header();
  void on_page_bytes(std::size_t bytes);
  void on_page();
  bool is_pages_of(std::uint16_t read) const;
  bool drain_spill();
  void recheck_pages();
  void reset_reader();

  TcpDevice& device_;
  std::uint64_t channel_;  // our name in the session
  Link link_;
  int epoll_ = -1;  // holds the socket and the timer, and so survives reconnects
  int timer_ = -1;  // readable at the deadline of the oldest request
  bool watching_ = false, watching_writable_ = false;
  std::uint64_t timer_ns_ = 0;  // what timer_ is set to; 0: off
  bool gone_ = false;           // lost, or in a forked child
  bool begun_ = false;          // there was a connection

  Outbox outbox_;
  std::uint32_t in_flight_ = 0;  // taken and not yet given back by poll()
  std::array<Completion, kPagesInFlightMax> done_{};
  std::uint32_t done_first_ = 0, done_count_ = 0;
  std::uint16_t recheck_first_ = kNone;  // pages with a wrong checksum, waiting for a free message

  std::uint64_t progress_ns_ = 0;        // when the server last did something for us
  std::uint64_t retry_deadline_ns_ = 0;  // of the retries, while they are under way
  std::uint64_t reply_time_ns_ = 0;      // smoothed time from sleeping to reply: decides whether spinning pays

  // The reply that is being received.
  std::array<std::byte, sizeof(wire::Header)> header_{};
  std::size_t header_have_ = 0;
  std::uint16_t reading_ = kNone;  // message whose pages are coming
  std::size_t page_have_ = 0;      // bytes of its first page
  std::unique_ptr<std::byte[]> spill_;
  std::size_t spill_first_ = 0, spill_end_ = 0;
};

}  // namespace hinterland::far
