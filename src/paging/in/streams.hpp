// Sequential streams in a sequence of faults: how many pages to bring besides the one asked for.
//
// Pages that were brought ahead do not fault, so a stream shows as a fault exactly where the last window ended. Each
// such hit doubles the window, up to the maximum; a stream that does not come back is forgotten. Several streams
// interleave (a merge sort reads dozens). A lone fault fetches one page: fetching around a random access would only
// push out pages that are in use.
//
// Three faults at equal distances, and equally far from each other in time, may be a stream that steps over pages
// (the column of a matrix); the fourth confirms it. Its window is single pages at that distance. Shorter distances
// than kLeastStride count as a stream without steps.
//
// What was brought for a stream that is forgotten before it came there was in vain. Where that is more than what was
// used, windows no longer double by themselves beyond the usual length, which is halved: a stream has to go on for a
// few windows first. Where it is much less, the usual length is doubled again.
//
// Over a device that takes its time, the next window is asked for while this one is being used up, so that the stream
// need not wait for it. Its first page is the marker: it is held back, and the fault on it asks for the window after.
// A long window asks for two: the program is through what is there at once, and then there is always one window that
// is received while another is mapped.
//
// Not thread-safe: belongs to whoever serves faults.
#pragma once

#include <array>
#include <cstdint>

#include "base/mutex.hpp"
#include "base/units.hpp"

namespace hinterland {

struct StreamWindow {
  PageRun run;             // pages to bring; holds the page asked for
  bool confirmed = false;  // part of a stream that was seen before
  // Worth asking for as well, for later, ahead_window pages at a time; the first of each is a marker; count 0: none.
  PageRun ahead{};
  std::uint32_t ahead_window = 0;  // pages
  // Further single pages to bring, each so far from the one before, the first from the page asked for.
  std::int32_t stride = 0;
  std::uint32_t steps = 0;
  // Pages of windows before, which are now known to have been in vain, as far as anybody can tell: they were there,
  // and no fault came behind them.
  std::uint32_t unused = 0;
};

class Streams {
 public:
  Streams(std::uint32_t pages_max, bool asks_ahead) : pages_max_(pages_max), asks_ahead_(asks_ahead) {}

  // A fault on `page`; returns what to bring, clipped to [0, window_pages). No run is longer than `most`.
  // Streams count pages in 32 bits, so that what each fault looks through is short: pages whose indexes differ by a
  // multiple of 2^32 look alike, which costs a wrong guess, and no stream goes on over such a border.
  StreamWindow on_fault(PageIndex page, std::uint64_t window_pages, std::uint32_t most = ~0u);
  // What on_fault() proposed as `ahead` was asked for, or the first of it.
  void asked_ahead(PageRun run);
  // Of what on_fault(page) proposed beside the page only so many were brought; else all of it counts as brought.
  void brought_only(PageIndex page, std::uint32_t pages);

 private:
  struct Stream {
    std::uint32_t asked = 0;   // the end of what was asked for; beyond next when a window ahead was
    std::uint32_t after = 0;   // where it faults after next, when two windows ahead were asked for; else 0
    std::uint32_t window = 0;  // pages brought last time; 0: the entry is free
    std::int32_t direction = 1;
    std::int32_t stride = 0;    // other than 0: it steps over pages, and next and asked mean nothing
    std::uint32_t last = 0;     // where it faulted last
    std::uint32_t pending = 0;  // pages brought beside that one, of which we do not know yet whether they are used
    std::uint32_t held = 0;     // hits in a row that have not made the window longer
  };
  static constexpr std::size_t kStreams = 32;
  static constexpr std::uint32_t kSlack = 2;  // a few pages may be resident already, and are stepped over
  // A distance that a stream without steps takes for pages that were there.
  static constexpr std::int64_t kLeastStride = kSlack + 2;
  static constexpr std::int64_t kMostStride = 1024;  // rows of 4 MiB. Farther ones are taken for chance
  static constexpr std::uint64_t kMostBetween = 8;   // faults, from one of such a stream to its next
  static constexpr std::uint32_t kMostSteps = 16;    // each page costs a call of its own
  static constexpr std::uint32_t kHeldBack = 3;      // hits that prove a stream where others end early
  static constexpr std::uint32_t kLearnFrom = 256;   // pages that were brought ahead, for a judgement

  static constexpr std::uint32_t kAheadFrom = 4;  // shorter windows are still finding out whether this is a stream
  static constexpr std::uint32_t kTwoAheadFrom = 32;

  StreamWindow propose(std::uint32_t page, std::uint32_t window_pages, std::uint32_t most);
  StreamWindow upwards(Stream& stream, std::uint32_t page, bool confirmed, std::uint32_t window_pages);
  StreamWindow downwards(Stream& stream, std::uint32_t page, bool confirmed);
  StreamWindow in_steps(Stream& stream, std::uint32_t page, std::uint32_t window_pages);
  std::size_t index_of(const Stream& stream) const { return static_cast<std::size_t>(&stream - streams_.data()); }
  std::uint32_t& next(const Stream& stream) { return next_[index_of(stream)]; }
  std::uint64_t used(const Stream& stream) const { return used_at_[index_of(stream)]; }
  void use_now(const Stream& stream);
  bool may_continue_one(std::uint32_t page) const;
  Stream* find(std::uint32_t page);
  bool begins_steps(std::uint32_t page);
  Stream& oldest();
  void grow(Stream& stream, std::uint32_t most);
  void note_used(Stream& stream, std::uint32_t page);
  std::uint32_t forget(Stream& stream);
  void learn();

  // What each fault looks through lies close together; the rest only where that says so. Faults of several threads
  // wait for each other meanwhile (SharedStreams).
  alignas(64) std::array<std::uint32_t, kStreams> next_{};  // where each stream faults next
  std::array<std::uint64_t, kStreams> used_at_{};           // when, by the clock of faults
  std::array<std::uint8_t, kMostBetween> lately_{};         // which it was at each of the last times
  std::uint32_t stepping_ = 0;                              // streams with a stride
  std::array<Stream, kStreams> streams_{};
  std::uint64_t clock_ = 0;
  std::uint32_t pages_max_;
  std::uint32_t usual_ = pages_max_;     // windows double by themselves up to here
  std::uint32_t used_ = 0, unused_ = 0;  // pages brought ahead, since the last judgement
  bool asks_ahead_;
};

// The same for several handlers: a stream's faults may come to any of them.
class SharedStreams {
 public:
  SharedStreams(std::uint32_t pages_max, bool asks_ahead) : streams_(pages_max, asks_ahead) {}
  StreamWindow on_fault(PageIndex page, std::uint64_t window_pages, std::uint32_t most) {
    LockGuard guard(mutex_);
    return streams_.on_fault(page, window_pages, most);
  }
  void asked_ahead(PageRun run) {
    LockGuard guard(mutex_);
    streams_.asked_ahead(run);
  }
  void brought_only(PageIndex page, std::uint32_t pages) {
    LockGuard guard(mutex_);
    streams_.brought_only(page, pages);
  }

 private:
  Mutex mutex_;
  Streams streams_;  // guarded by mutex_
};

}  // namespace hinterland
