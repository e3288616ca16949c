// What a tcp: device gives back to its server: slabs and single pages. The server need not know of it soon, and who
// gives back must not wait for a server that stands still (docs/adr/0045-giving-back-does-not-wait.md).
//
// Requests lie here as they go over the wire: first to be sent, then sent and not yet answered, since a connection
// that breaks may have lost them. They are a bounded number. What comes beyond that is kept as a mark a slab, from
// which requests are made when there is room again.
//
// Belongs to one process; nothing here sends, waits or locks. Who sends keeps the order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "far/tcp/shared_pages.hpp"
#include "far/tcp/wire.hpp"

namespace hinterland::far {

class GiveBacks {
 public:
  // `pages` must outlive this. Once, before there are other threads.
  void create(SharedPages& pages);

  // Slabs that this process no longer holds, and pages that hold nothing any more (SharedPages says so already).
  void release_slab(std::uint32_t slab);
  void discard(FarPage page);

  // A number for a request of the caller's own, and where among the bytes here it stands: after those up to `end`.
  struct Turn {
    std::uint64_t id, end;
  };
  Turn take_turn();

  // Bytes to send next, at most up to `end`: copied, so that they stay the same while others add to them.
  std::span<const std::byte> next_bytes(std::uint64_t end, std::span<std::byte> copy);
  std::uint64_t end() const { return end_; }
  void sent(std::size_t bytes) { sent_ += bytes; }
  // A reply came. False when it is not the one to the oldest request here that was sent.
  bool answered(const wire::Header& reply);
  // The connection is a new one: all that is not answered is sent again, with the numbers that it had.
  void begin_again() { sent_ = first_; }

  // Makes requests of what is only marked, as far as there is room.
  void refill();
  bool has_marks() const { return marks_ != 0; }
  bool all_sent() const { return sent_ == end_ && marks_ == 0; }
  bool all_answered() const { return first_ == end_ && marks_ == 0; }

  // In a forked child: the parent tells what is here.
  void clear();

 private:
  enum Mark : std::uint8_t { kNone = 0, kRelease = 1, kDiscard = 2 };
  // 2048 slabs, 32 GiB, before marks are needed; and at least kSlabRequestsMax.
  static constexpr std::size_t kBytesMax = 64 << 10;
  static constexpr std::size_t kDiscardsMax = 512;
  static constexpr std::size_t kRequestMax = sizeof(wire::Header) + wire::kRunsMax * sizeof(wire::Run);
  // A slab of which every other page holds nothing.
  static constexpr std::size_t kSlabRequestsMax = kSlabPages / 2 / wire::kRunsMax * kRequestMax;
  static_assert(kSlabRequestsMax < kBytesMax);
  class Runs;

  std::size_t room() const { return kBytesMax - static_cast<std::size_t>(end_ - first_); }
  void append(std::span<const std::byte> bytes);
  void append_release(std::uint32_t slab);
  void append_runs(std::span<const wire::Run> runs, std::uint64_t stamp);
  void flush_discards();
  void discard_slab(std::uint32_t slab);
  void set_mark(std::uint32_t slab, Mark mark);

  SharedPages* pages_ = nullptr;
  std::uint64_t next_id_ = 1;
  std::array<FarPage, kDiscardsMax> discards_{};  // gathered, so that a request has many
  std::size_t discards_used_ = 0;
  // Bytes of the wire, numbered since the device was opened; number n is at n % kBytesMax.
  std::array<std::byte, kBytesMax> bytes_{};
  std::uint64_t first_ = 0, sent_ = 0, end_ = 0;  // oldest not answered, next to send, next to be added
  std::vector<Mark> marks_by_slab_;
  std::size_t marks_ = 0;
  std::uint32_t next_mark_ = 0;  // where the search goes on
};

}  // namespace hinterland::far
