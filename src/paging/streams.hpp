// Sequential streams in a sequence of faults: how many pages to bring besides the one asked for.
//
// Pages that were brought ahead do not fault, so a stream shows as a fault exactly where the last window ended. Each
// such hit doubles the window, up to the maximum; a stream that does not come back is forgotten. Several streams
// interleave (a merge sort reads dozens). A lone fault fetches one page: fetching around a random access would only
// push out pages that are in use.
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
};

class Streams {
 public:
  explicit Streams(std::uint32_t pages_max) : pages_max_(pages_max) {}

  // A fault on `page`; returns what to bring, clipped to [0, window_pages).
  StreamWindow on_fault(PageIndex page, std::uint32_t window_pages);

 private:
  struct Stream {
    std::uint32_t next = 0;    // where the stream faults next
    std::uint32_t window = 0;  // pages brought last time; 0: the entry is free
    std::int32_t direction = 1;
    std::uint64_t used = 0;
  };
  static constexpr std::uint32_t kSlack = 2;  // a few pages may be resident already, and are stepped over

  Stream* find(std::uint32_t page);
  Stream* oldest();

  std::array<Stream, 32> streams_{};
  std::uint64_t clock_ = 0;
  std::uint32_t pages_max_;
};

// The same for several handlers: a stream's faults may come to any of them.
class SharedStreams {
 public:
  explicit SharedStreams(std::uint32_t pages_max) : streams_(pages_max) {}
  StreamWindow on_fault(PageIndex page, std::uint32_t window_pages) {
    LockGuard guard(mutex_);
    return streams_.on_fault(page, window_pages);
  }

 private:
  Mutex mutex_;
  Streams streams_;  // guarded by mutex_
};

}  // namespace hinterland
