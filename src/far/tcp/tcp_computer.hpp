// What a tcp: device has its server compute: over a connection of its own, so that page reads and slabs wait for
// nothing. One thread at a time; others wait for it, page faults never do.
//
// A connection that fails is made anew once, and what has no answer is asked again: nothing is changed by it, or only
// pages that are nobody's yet (compose, patch). If that fails too, the pieces are left to the caller, who reads the
// pages; whether the device is lost is found out there. A server that did not answer is not asked again for as long
// as it is waited for.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/mutex.hpp"
#include "far/device.hpp"
#include "far/tcp/link.hpp"

namespace hinterland::far {

class TcpDevice;

class TcpComputer {
 public:
  TcpComputer(TcpDevice& device, const DescriptorSet& numbers) : device_(device), link_(numbers) {}

  // As Device::compute().
  int compute(const hl_computation& what, std::span<const Piece> pieces, std::byte* results, bool* done);
  // As Device::apply(). Which number an operator has at the server is asked for once.
  int apply(const OperatorName& which, const std::byte* argument, std::span<const Piece> pieces, std::byte* results,
            bool* done);
  // As Device::compose(); tcp_composer.cpp.
  int compose(std::uint32_t element_bytes, std::span<const ComposedPage> pages, std::span<const ComposedPart> parts,
              bool* done);
  // As Device::patch(); tcp_patcher.cpp.
  int patch(std::uint32_t element_bytes, std::span<const PatchedPage> pages, std::span<const hl_patch> patches,
            bool* done);
  // In a forked child, around joining the session.
  void before_join_in_child();
  void after_join_in_child();

 private:
  static constexpr std::size_t kAhead = 4;  // messages on their way: one is computed while others travel

  // One that is on its way.
  struct Message {
    std::size_t begin = 0;  // number of the piece from which on it was gathered
    std::uint64_t id = 0, echo = 0;
    std::uint16_t count = 0;
    std::array<std::uint32_t, wire::kPagesMax> which;  // pieces, by number
  };
  struct Asked {
    wire::Type type;
    std::uint32_t field;         // the header's `slab`
    const hl_computation* what;  // of compute
    const OperatorName* which;   // of apply
    const std::byte* argument;   // of apply
    std::size_t result_bytes;    // of a piece; 0: counts of all together
    std::span<const Piece> pieces;
    std::byte* results;
    bool* done;
    std::size_t next = 0;  // piece that is looked at next
  };
  // An operator that was asked for; the oldest makes room.
  struct Known {
    OperatorName which;
    bool is_there = false;
    std::uint32_t field = 0;
  };
  // Pages to be composed, of which one message is on its way.
  struct Composed {
    std::uint32_t element_bytes;
    std::span<const ComposedPage> pages;
    std::span<const ComposedPart> parts;
    bool* done;
    std::size_t next = 0;  // page that is looked at next
  };
  struct Patching {
    std::uint32_t element_bytes;
    std::span<const PatchedPage> pages;
    std::span<const hl_patch> patches;
    bool* done;
    std::size_t next = 0;  // page that is looked at next
  };
  // Pages that are made at the server (compose, patch).
  struct MadeMessage {
    std::size_t begin = 0;  // number of the page from which on it was gathered
    std::uint64_t id = 0, echo = 0;
    std::uint32_t field = 0;
    std::uint16_t listed = 0, count = 0;               // parts or elements, and pages
    std::array<std::uint32_t, wire::kPagesMax> which;  // pages, by number
  };
  using Checksums = std::array<wire::Le<std::uint64_t>, wire::kPagesMax>;
  class ComposedList;
  class PatchedList;

  // Runs ask() over the connection, which is made anew where need be; twice at most. ask: 0 or -errno, as this.
  template <typename Ask>
  int with_link_locked(const Ask& ask);
  // asked.next goes through what is asked for, several messages ahead of the answers.
  template <typename AMessage, typename AnAsked, typename Send, typename Receive>
  static int go_through(AnAsked& asked, std::size_t size, const Send& send, const Receive& receive);
  template <typename List>
  int send_list_locked(const List& list, MadeMessage* message);
  int send_composed_locked(Composed& asked, MadeMessage* message);
  int receive_composed_locked(Composed& asked, const MadeMessage& message);
  bool tells_right(const Composed& asked, std::size_t page, std::uint64_t checksum) const;
  int send_patched_locked(Patching& asked, MadeMessage* message);
  int receive_patched_locked(Patching& asked, const MadeMessage& message);
  int receive_checksums_locked(wire::Type type, const MadeMessage& message, Checksums* told, std::size_t* count);
  int run_locked(Asked& asked);
  int find_locked(Asked& asked, bool* is_there);
  void note_locked(const OperatorName& which, bool is_there, std::uint32_t field);
  int connect_locked(std::uint64_t limit_ns);
  int ask_locked(Asked& asked);
  int send_locked(Asked& asked, Message* message);
  int send_message_locked(const Asked& asked, const Message& message, std::span<const wire::Piece> list);
  int receive_locked(Asked& asked, const Message& message);
  void store(Asked& asked, const Message& message) const;

  TcpDevice& device_;
  Mutex mutex_;
  // Guarded by mutex_:
  Link link_;
  int inherited_ = -1;
  std::uint64_t channel_ = 0;  // our name in the session; 0: none yet
  std::uint64_t next_id_ = 1;
  std::array<Known, 16> known_{};
  std::size_t known_count_ = 0;  // that were ever noted
  std::uint64_t failed_ns_ = 0;  // when it failed last; 0: never, or it has worked since
  alignas(8) std::array<std::byte, wire::kComputeReplyMax> reply_;
};

}  // namespace hinterland::far
