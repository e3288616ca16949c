// Inside of TcpComputer: what computing and composing share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"
#include "far/tcp/blocking_io.hpp"
#include "far/tcp/tcp_computer.hpp"
#include "far/tcp/tcp_device.hpp"

namespace hinterland::far {

// The checksum of a page while it is made at the server: any but 0.
inline constexpr std::uint64_t kOnItsWay = 1;

template <typename Ask>
int TcpComputer::with_link_locked(const Ask& ask) {
  int result = -EAGAIN;
  if (failed_ns_ != 0 && now_ns() < failed_ns_ + device_.timeout_ns()) return -EAGAIN;
  // The retry has its own time, so that a server that stands still costs one time limit and a little more.
  for (std::uint64_t limit_ns : {device_.timeout_ns(), kRetryNs}) {
    if (device_.lost() != 0) return -device_.lost();
    result = link_.ready() ? 0 : connect_locked(limit_ns);
    if (result == 0) result = ask();
    failed_ns_ = result != 0 ? now_ns() : 0;
    if (result == 0) return 0;
    device_.drop(link_);
  }
  return result;
}

// Sends what the list holds, and notes what the reply to it must say.
template <typename List>
int TcpComputer::send_list_locked(const List& list, MadeMessage* message) {
  message->id = next_id_++;
  message->field = list.field();
  message->listed = list.listed();
  message->echo = list.echo();
  wire::Header header = list.header(message->id);
  header.stamp = device_.pages().take_stamp();
  std::array<std::byte, wire::kRequestPrefixMax> bytes;
  const std::size_t end = list.write(header, bytes);
  return send_all(link_.descriptor(), std::span(bytes).first(end), now_ns() + device_.timeout_ns());
}

// The server answers in the order in which it was asked. When this fails, asked.next is the first that has no answer.
template <typename AMessage, typename AnAsked, typename Send, typename Receive>
int TcpComputer::go_through(AnAsked& asked, std::size_t size, const Send& send, const Receive& receive) {
  std::array<AMessage, kAhead> messages;
  std::size_t sent = 0, answered = 0;
  for (;;) {
    while (sent - answered < kAhead && asked.next < size) {
      AMessage& message = messages[sent % kAhead];
      if (int result = send(&message); result != 0) {
        asked.next = sent != answered ? messages[answered % kAhead].begin : message.begin;
        return result;
      }
      sent += message.count != 0 ? 1 : 0;
    }
    if (sent == answered) return 0;
    const AMessage& message = messages[answered % kAhead];
    if (int result = receive(message); result != 0) {
      asked.next = message.begin;
      return result;
    }
    ++answered;
  }
}

}  // namespace hinterland::far
