// Records that many threads of one process write and another process reads, in memory that both map. Neither waits
// for the other: a full queue loses records and counts them.
//
// A writer takes a place, fills it, and says so. The reader trusts nothing that it finds: what stands in the memory,
// the other process, or whoever writes there, may have made up.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.hpp"

namespace hinterland::trace {

template <typename Record, std::uint32_t kRoom>
struct SharedQueue {
  struct Place {
    // The record's number, and one; release, after the record. What another number says is not written yet.
    std::atomic<std::uint64_t> filled;
    Record record;
  };
  alignas(64) std::atomic<std::uint64_t> begun;  // records that have a place
  std::atomic<std::uint64_t> lost;               // that found none
  alignas(64) std::atomic<std::uint64_t> taken;  // by the reader; release, after the record was copied
  alignas(64) Place places[kRoom];

  // --- writers: any thread; never blocks, allocates nothing
  bool is_full() const { return is_full_at(begun.load(std::memory_order_relaxed)); }
  // False: no room, and counted as lost.
  bool put(const Record& record) {
    std::uint64_t at = begun.load(std::memory_order_relaxed);
    do {
      if (is_full_at(at)) {
        lost.fetch_add(1, std::memory_order_relaxed);
        return false;
      }
    } while (!begun.compare_exchange_weak(at, at + 1, std::memory_order_relaxed));
    Place& place = places[at % kRoom];
    place.record = record;
    place.filled.store(at + 1, std::memory_order_release);  // pairs with the reader's look
    return true;
  }

 private:
  bool is_full_at(std::uint64_t at) const {
    // acquire pairs with the reader's release: the place is ours to write again. Where others came between, the
    // reader may be beyond `at` by now.
    auto waiting = static_cast<std::int64_t>(at - taken.load(std::memory_order_acquire));
    return waiting >= std::int64_t{kRoom};
  }
};

// The one reader of a queue.
template <typename Record, std::uint32_t kRoom>
class QueueReader {
 public:
  explicit QueueReader(SharedQueue<Record, kRoom>& queue) : queue_(queue) {}

  // Calls visit(record) for each record that is there, in the order of their places.
  template <typename Visit>
  void take(Visit&& visit) {
    std::uint64_t begun = queue_.begun.load(std::memory_order_relaxed);
    if (begun - taken_ > kRoom) return;  // nonsense: somebody else wrote there
    for (; taken_ != begun; ++taken_) {
      const auto& place = queue_.places[taken_ % kRoom];
      // acquire pairs with the writer's release
      bool filled = place.filled.load(std::memory_order_acquire) == taken_ + 1;
      if (!filled && is_still_awaited()) break;
      awaited_since_ns_ = 0;
      skipped_ += filled ? 0 : 1;
      if (filled) visit(static_cast<const Record&>(place.record));
    }
    queue_.taken.store(taken_, std::memory_order_release);  // pairs with the writers' look for room
  }
  std::uint64_t lost() const { return queue_.lost.load(std::memory_order_relaxed) + skipped_; }

 private:
  // A thread that took a place may have been killed there: then it is never filled.
  static constexpr std::uint64_t kFilledWithinNs = 2'000'000'000;
  bool is_still_awaited() {
    std::uint64_t now = now_ns();
    if (awaited_since_ns_ == 0) awaited_since_ns_ = now;
    return now - awaited_since_ns_ < kFilledWithinNs;
  }

  SharedQueue<Record, kRoom>& queue_;
  std::uint64_t taken_ = 0, skipped_ = 0;
  std::uint64_t awaited_since_ns_ = 0;
};

}  // namespace hinterland::trace
