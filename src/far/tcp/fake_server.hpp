// A server for tests of the client that lies on demand: blocking, one thread a connection, memory in a map.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "far/tcp/handshake.hpp"
#include "far/tcp/shared_pages.hpp"
#include "far/tcp/socket.hpp"

namespace hinterland::far::testing {

enum class Lie {
  none,
  rubbish,       // random bytes instead of a reply
  wrong_id,      // a reply to what was not asked
  wrong_length,  // a header that announces another length
  refused,       // an error, and the pages all the same
  wrong_pages,   // a reply that says it is for other pages
  wrong_type,    // the reply to a write for a read
  bad_content,   // a bit flipped in the first page, or range
  wrong_size,    // of ranges: another length, which header and body agree on
  silence,       // no reply
  hang_up,       // closes instead of replying
  half_a_reply,  // closes in the middle of the pages
  backwards,     // not a lie: replies in reverse order (two at a time)
  same_slab,     // gives out slab 0 again and again
};

class FakeServer {
 public:
  FakeServer() {
    auto endpoints = resolve("127.0.0.1", 0, true);
    Endpoint& endpoint = endpoints->front();
    listener_ = ::socket(endpoint.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    ::bind(listener_, reinterpret_cast<sockaddr*>(&endpoint.address), endpoint.length);
    ::listen(listener_, 16);
    endpoint.length = sizeof endpoint.address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&endpoint.address), &endpoint.length);
    port_ = endpoint.port();
    acceptor_ = std::thread([this] { accept_loop(); });
  }
  ~FakeServer() {
    stopping_ = true;
    hold_give_backs(false);
    acceptor_.join();
    for (std::thread& thread : conversations_) thread.join();
    ::close(listener_);
  }
  std::uint16_t port() const { return port_; }

  // Lies in the next `times` replies to reads, compose and patch (slab_allocate for same_slab).
  void lie(Lie lie, int times) {
    times_ = times;
    lie_ = lie;
  }
  // Stands still, on that connection, when slabs or pages are given back.
  void hold_give_backs(bool hold) {
    hold_ = hold;
    hold_.notify_all();
  }
  // Does what the next `times` releases ask for, and closes the connection instead of a reply.
  std::atomic<int> hang_up_after_release{0};
  // Likewise of allocations.
  std::atomic<int> hang_up_after_allocation{0};
  // The ids of slab_release, as they came, and the pages discarded since they were written.
  std::vector<std::uint64_t> releases() {
    std::lock_guard lock(mutex_);
    return releases_;
  }
  std::set<std::uint64_t> discarded() {
    std::lock_guard lock(mutex_);
    return discarded_;
  }
  std::atomic<bool> forget_sessions{false};
  bool knows_ranges = true;
  std::uint32_t composes = 0;                           // kComposes, kPatches; before a client connects
  std::atomic<int> ranges_asked{0}, composes_asked{0};  // messages; of the latter patch, too
  std::atomic<int> connections{0};

 private:
  using Page = std::array<std::byte, kPageSize>;

  void accept_loop() {
    while (!stopping_) {
      pollfd waiting{listener_, POLLIN, 0};
      if (::poll(&waiting, 1, 10) <= 0) continue;
      int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      set_stream_options(fd);
      ++connections;
      conversations_.emplace_back([this, fd] {
        converse(fd);
        ::close(fd);
      });
    }
  }
  bool read_all(int fd, std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      pollfd waiting{fd, POLLIN, 0};
      if (stopping_) return false;
      if (::poll(&waiting, 1, 10) <= 0) continue;
      ssize_t n = ::recv(fd, bytes.data(), bytes.size(), 0);
      if (n <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return true;
  }
  static void send_all(int fd, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }
  void converse(int fd) {
    SecretKey none;
    wire::ServerHandshake handshake;
    handshake.start(none);
    std::vector<std::byte> hello(sizeof(wire::ClientHello));
    if (!read_all(fd, hello)) return;
    std::copy(hello.begin(), hello.end(), handshake.input().begin());
    if (handshake.received(hello.size()) != wire::Step::done) return;
    send_all(fd, handshake.output());
    std::vector<std::byte> held_back;
    wire::Header request;
    while (read_all(fd, std::as_writable_bytes(std::span(&request, 1)))) {
      std::vector<std::byte> body(request.length);
      if (!read_all(fd, body)) return;
      wire::Type type{static_cast<std::uint16_t>(request.type)};
      if (type == wire::Type::slab_release || type == wire::Type::discard) hold_.wait(true);
      std::vector<std::byte> reply = answer(request, body);
      if (type == wire::Type::slab_release && hang_up_after_release > 0) {
        --hang_up_after_release;
        return;
      }
      if (type == wire::Type::slab_allocate && hang_up_after_allocation > 0) {
        --hang_up_after_allocation;
        return;
      }
      bool is_read = type == wire::Type::read || type == wire::Type::read_ranges || type == wire::Type::compose ||
                     type == wire::Type::patch;
      Lie lie = is_read && times_ > 0 ? lie_.load() : Lie::none;
      if (lie != Lie::none) {
        --times_;
        if (!tell(fd, lie, reply, held_back)) return;
      }
      send_all(fd, reply);
      if (lie != Lie::backwards && !held_back.empty()) {
        send_all(fd, held_back);
        held_back.clear();
      }
    }
  }
  // Turns the reply into a lie. False: hang up.
  bool tell(int fd, Lie lie, std::vector<std::byte>& reply, std::vector<std::byte>& held_back) {
    wire::Header header;
    std::memcpy(&header, reply.data(), sizeof header);
    switch (lie) {
      case Lie::rubbish:
        for (std::size_t i = 0; i < reply.size(); ++i) reply[i] = static_cast<std::byte>(i * 37 + 11);
        return true;
      case Lie::wrong_id:
        header.id = header.id + 1;
        break;
      case Lie::wrong_length:
        header.length = header.length + 4096;
        break;
      case Lie::wrong_pages:
        header.stamp = header.stamp + 1;
        break;
      case Lie::wrong_type:
        header.type = static_cast<std::uint16_t>(wire::Type::write) | wire::kReplyBit;
        break;
      case Lie::refused:
        header.status = static_cast<std::uint16_t>(wire::Code::not_yours);
        header.length = 0;
        break;
      case Lie::bad_content:
        reply[sizeof header + std::min<std::size_t>(1234, reply.size() - sizeof header - 1)] ^= std::byte{4};
        return true;
      case Lie::wrong_size:
        header.slab = header.slab - 1;
        header.length = header.slab;
        reply.pop_back();
        break;
      case Lie::silence:
        reply.clear();
        return true;
      case Lie::hang_up:
        return false;
      case Lie::half_a_reply:
        send_all(fd, std::span(reply).first(reply.size() / 2));
        return false;
      case Lie::backwards:
        reply.insert(reply.end(), held_back.begin(), held_back.end());
        held_back.swap(reply);
        reply.clear();
        return true;
      case Lie::none:
      case Lie::same_slab:
        return true;
    }
    std::memcpy(reply.data(), &header, sizeof header);
    return true;
  }
  std::vector<std::byte> answer(const wire::Header& request, std::span<const std::byte> body) {
    std::lock_guard lock(mutex_);
    wire::Header header = make_reply(request, wire::Code::ok);
    std::vector<std::byte> reply;
    auto put = [&](std::span<const std::byte> bytes) { reply.insert(reply.end(), bytes.begin(), bytes.end()); };
    wire::Type type{static_cast<std::uint16_t>(request.type)};
    std::span pages(reinterpret_cast<const wire::PageNumber*>(body.data()), request.count);
    if (type == wire::Type::read || type == wire::Type::write || type == wire::Type::read_ranges)
      header.stamp = echo_of(pages);
    if (type == wire::Type::session_join && forget_sessions)
      header = make_reply(request, wire::Code::session_unknown);
    if (type == wire::Type::slab_allocate) header.slab = lie_ == Lie::same_slab ? 0u : slabs_++;
    put(wire::bytes_of(header));
    if (header.status != 0) return reply;
    if (type == wire::Type::session_open || type == wire::Type::session_join) {
      wire::SessionReply session{};
      session.slabs_max = 8;
      session.slab_pages = kSlabPages;
      session.page_bytes = static_cast<std::uint32_t>(kPageSize);
      session.ranges = knows_ranges ? 1u : 0u;
      session.composes = composes;
      put(wire::bytes_of(session));
    }
    if (type == wire::Type::compose) return compose(header, request, body);
    if (type == wire::Type::patch) return patch(header, request, body);
    note_given_back(request, body);
    ranges_asked += type == wire::Type::read_ranges;
    for (std::size_t i = 0; i < request.count; ++i) {
      if (type == wire::Type::read_ranges)
        put(std::span(pages_[range_page(pages[i]).value]).subspan(range_offset(pages[i]), range_bytes(pages[i])));
      if (type == wire::Type::read) put(pages_[pages[i]]);
      if (type == wire::Type::write) discarded_.erase(pages[i]);
      if (type == wire::Type::write)
        std::memcpy(pages_[pages[i]].data(), body.data() + pages.size_bytes() + i * kPageSize, kPageSize);
    }
    return reply;
  }

  // Of whole parts only; without masks.
  std::vector<std::byte> compose(wire::Header header, const wire::Header& request, std::span<const std::byte> body) {
    ++composes_asked;
    const std::span pages(reinterpret_cast<const wire::PageNumber*>(body.data()), wire::composed_pages(request.slab));
    const std::span pieces(reinterpret_cast<const wire::Piece*>(body.data() + pages.size_bytes()), request.count);
    std::vector<std::byte> all;
    for (const wire::Piece& piece : pieces) {
      const Page& from = pages_[piece.page];
      all.insert(all.end(), from.begin() + piece.offset, from.begin() + piece.offset + piece.bytes);
    }
    EXPECT_EQ(all.size(), bytes_of_pages(pages.size()));
    header.stamp = echo_of(pages, pieces);
    return store(header, pages, all);
  }
  std::vector<std::byte> patch(wire::Header header, const wire::Header& request, std::span<const std::byte> body) {
    ++composes_asked;
    const std::span patched(reinterpret_cast<const wire::Patched*>(body.data()), wire::composed_pages(request.slab));
    const std::span places(reinterpret_cast<const wire::Place*>(body.data() + patched.size_bytes()), request.count);
    const std::size_t element = wire::composed_element_bytes(request.slab);
    const std::byte* from = body.data() + patched.size_bytes() + places.size_bytes();
    std::vector<wire::PageNumber> pages;
    std::vector<std::byte> all(bytes_of_pages(patched.size()));
    for (std::size_t i = 0; i < patched.size(); ++i) {
      pages.push_back(patched[i].page);
      if (patched[i].from != wire::kNoPage)
        std::memcpy(all.data() + bytes_of_pages(i), pages_[patched[i].from].data(), kPageSize);
      else
        for (std::size_t at = 0; at < kPageSize; at += 8)
          std::memcpy(all.data() + bytes_of_pages(i) + at, &patched[i].word, 8);
    }
    for (const wire::Place place : places) {
      std::memcpy(all.data() + bytes_of_pages(place_page(place)) + place_element(place) * element, from, element);
      from += element;
    }
    header.stamp = echo_of(patched);
    return store(header, pages, all);
  }
  // The reply with the pages' checksums.
  std::vector<std::byte> store(const wire::Header& header, std::span<const wire::PageNumber> pages,
                               std::span<const std::byte> all) {
    std::vector<std::byte> reply(sizeof header);
    std::memcpy(reply.data(), &header, sizeof header);
    for (std::size_t i = 0; i < pages.size(); ++i) {
      std::memcpy(pages_[pages[i]].data(), all.data() + bytes_of_pages(i), kPageSize);
      discarded_.erase(pages[i]);
      const wire::Le<std::uint64_t> checksum = SharedPages::checksum_of(pages_[pages[i]].data());
      const auto bytes = wire::bytes_of(checksum);
      reply.insert(reply.end(), bytes.begin(), bytes.end());
    }
    return reply;
  }

  void note_given_back(const wire::Header& request, std::span<const std::byte> body) {
    wire::Type type{static_cast<std::uint16_t>(request.type)};
    if (type == wire::Type::slab_release) releases_.push_back(request.id);
    if (type != wire::Type::discard) return;
    for (const wire::Run& run : std::span(reinterpret_cast<const wire::Run*>(body.data()), request.count))
      for (std::uint64_t page = run.first; page < run.first + run.count; ++page) discarded_.insert(page);
  }

  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<Lie> lie_{Lie::none};
  std::atomic<int> times_{0};
  std::atomic<bool> hold_{false};
  std::vector<std::uint64_t> releases_;  // guarded by mutex_
  std::set<std::uint64_t> discarded_;    // guarded by mutex_
  std::mutex mutex_;
  std::map<std::uint64_t, Page> pages_;
  std::uint32_t slabs_ = 0;
  std::thread acceptor_;
  std::vector<std::thread> conversations_;  // of the acceptor, and of the destructor after it
};

}  // namespace hinterland::far::testing
