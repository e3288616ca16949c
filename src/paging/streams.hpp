// Sequential streams in a sequence of faults: how many pages to bring besides the one asked for.
//
// Pages that were brought ahead do not fault, so a stream shows as a fault exactly where the last window ended. Each
// such hit doubles the window, up to the maximum; a stream that does not come back is forgotten. Several streams
// interleave (a merge sort reads dozens). A lone fault fetches one page: fetching around a random access would only
// push out pages that are in use.
//
// Over a device that takes its time, the next window is asked for while this one is being used up, so that the stream
// need not wait for it. Its first page is the marker: it is held back, and the fault on it asks for the window after.
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
  PageRun ahead{};         // worth asking for as well, for later; the first of them is the marker; count 0: none
};

class Streams {
 public:
  Streams(std::uint32_t pages_max, bool asks_ahead) : pages_max_(pages_max), asks_ahead_(asks_ahead) {}

  // A fault on `page`; returns what to bring, clipped to [0, window_pages). No run is longer than `most`.
  StreamWindow on_fault(PageIndex page, std::uint32_t window_pages, std::uint32_t most = ~0u);
  // What on_fault() proposed was asked for, or the first of it.
  void asked_ahead(PageRun run);

 private:
  struct Stream {
    std::uint32_t next = 0;    // where the stream faults next
    std::uint32_t asked = 0;   // the end of what was asked for; beyond next when a window ahead was
    std::uint32_t window = 0;  // pages brought last time; 0: the entry is free
    std::int32_t direction = 1;
    std::uint64_t used = 0;
  };
  static constexpr std::uint32_t kSlack = 2;  // a few pages may be resident already, and are stepped over

  static constexpr std::uint32_t kAheadFrom = 4;  // shorter windows are still finding out whether this is a stream

  StreamWindow upwards(Stream& stream, PageIndex page, bool confirmed, std::uint32_t window_pages);
  Stream* find(std::uint32_t page);
  Stream* oldest();

  std::array<Stream, 32> streams_{};
  std::uint64_t clock_ = 0;
  std::uint32_t pages_max_;
  bool asks_ahead_;
};

// The same for several handlers: a stream's faults may come to any of them.
class SharedStreams {
 public:
  SharedStreams(std::uint32_t pages_max, bool asks_ahead) : streams_(pages_max, asks_ahead) {}
  StreamWindow on_fault(PageIndex page, std::uint32_t window_pages, std::uint32_t most) {
    LockGuard guard(mutex_);
    return streams_.on_fault(page, window_pages, most);
  }
  void asked_ahead(PageRun run) {
    LockGuard guard(mutex_);
    streams_.asked_ahead(run);
  }

 private:
  Mutex mutex_;
  Streams streams_;  // guarded by mutex_
};

}  // namespace hinterland
