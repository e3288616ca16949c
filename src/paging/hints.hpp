// Serves hints: brings pages in on the program's own thread, before it touches them. No trap, no message, no other
// thread. (Eden 3.2 "Hinted path".)
//
// Pages are moved as the fault handler moves them, under their busy bit. Nothing here waits for one: a page that
// somebody else moves is left to him, and to the fault, should the program be faster.
//
// What runs here runs on a program's thread, which may be interrupted, cancelled or end at any time. So while a page
// is held all signals are blocked and cancellation is off (Undisturbed): a signal handler that touches the page would
// wait for the thread that it interrupted. And a thread whose stack is in the window gets no hints: it could
// take away the page it stands on.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "paging/core.hpp"
#include "paging/evictor.hpp"
#include "paging/fetcher.hpp"
#include "paging/pager.hpp"

namespace hinterland {

class Hints {
 public:
  explicit Hints(Core& core) : core_(core) {}

  // Any thread of the program, once paging has begun. Blocks until what the hint asks for is
  // there, or cannot be had (then the fault will say so). `direct` makes room where the background fell behind.
  void serve(const Hint& hint, Evictor& direct);

  // No hint is under way between these. The caller may hold map_mutex, and none of the locks after it.
  void pause();
  void resume();
  void after_fork_in_child();

 private:
  // A queue to the device, for one hint at a time. Threads share a few of them: each may be a connection.
  struct Lane {
    Mutex mutex;
    std::unique_ptr<Fetcher> fetcher;  // made for the first hint that needs it
    bool failed = false;               // could not be made: not tried again
  };
  static constexpr std::size_t kLanes = 8;

  // What one hint asks for: pages, and of these the ones that are wanted now.
  struct Wanted {
    PageRun all, now;
    bool write;
    std::uint8_t priority;
    bool is_now(PageIndex page) const { return now.first <= page && page < now.end(); }
    bool is_written(PageIndex page) const { return write && is_now(page); }
  };

  Wanted pages_of(const Hint& hint) const;
  bool all_there(const Wanted& wanted);
  Lane& take_lane();
  bool open(Lane& lane);
  void bring(Lane& lane, const Wanted& wanted, Evictor& direct);
  std::uint32_t bring_one_run(Lane& lane, const Wanted& wanted, PageIndex page, Evictor& direct);
  std::uint32_t fetch(Lane& lane, const Wanted& wanted, PageIndex page, PageWord word, Evictor& direct);
  bool lock_far(PageIndex page, const Wanted& wanted);
  PageWord arriving(PageIndex page, PageWord word, const Wanted& wanted);
  bool expects_write(PageIndex page, PageWord word, const Wanted& wanted);
  void clear_protection(PageIndex page, PageWord word);
  void take_back(PageIndex page, PageWord word, const Wanted& wanted);
  void make_room(std::uint32_t pages, Evictor& direct);

  Core& core_;
  std::array<Lane, kLanes> lanes_;
};

}  // namespace hinterland
