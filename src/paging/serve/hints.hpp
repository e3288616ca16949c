// Serves hints: brings pages in on the program's own thread, before it touches them. No trap, no message, no other
// thread. (Eden 3.2 "Hinted path".)
//
// Pages are moved as the fault handler moves them, under their busy bit. Nothing here waits for one that somebody
// else moves: it is left to him, and to the fault, should the program be faster.
//
// A fetch that was begun belongs to nobody: whoever comes next gathers what has arrived. That is another hint, a
// thread that waits for such a page (Core::lock_waiting), or, for a thread that waits for it in a fault, the
// gatherer, which sleeps until then. So a thread that computes for long holds nobody up. (Eden 3.2 "fault stealing".)
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

#include "paging/in/fetcher.hpp"
#include "paging/out/evictor.hpp"
#include "paging/page/core.hpp"
#include "paging/serve/bringer.hpp"
#include "paging/serve/hint.hpp"

namespace hinterland {

class Hints final : public UnawaitedFetches {
 public:
  explicit Hints(Core& core) : core_(core), bringer_(core) { core.unawaited = this; }

  // --- any thread of the program, once paging has begun; `direct` makes room where the background fell behind
  // Blocks until what the hint asks for is there, or cannot be had (then the fault will say so). Read-ahead may still
  // be on its way.
  void serve(const Hint& hint, Evictor& direct);
  // Starts the same without waiting. True when pages of the hint are on their way: they are there when
  // is_on_its_way() says no, which takes a poll() by somebody. Where hundreds are on their way, waits for the oldest.
  bool begin(const Hint& hint, Evictor& direct);
  bool is_on_its_way(const Hint& hint) const;

  // --- any thread; the caller may hold map_mutex
  // Gathers what has arrived for anybody. Never blocks; next to nothing where nothing is on its way. True when
  // something came.
  bool poll() override;
  bool anything_on_its_way() const { return active_.load() != 0; }
  // Sleeps until poll() may find something, at most timeout_ns; not when nothing is on its way.
  void wait(std::uint64_t timeout_ns);
  // A thread faulted on a page that is on its way, and cannot poll.
  void wake_gatherer() override;
  // The body of the gatherer's thread. Only devices that are not synchronous need one.
  void run_gatherer();

  // Nothing of hints is on its way between these. The caller may hold map_mutex, and none of the locks after it.
  void pause();
  void resume();
  void after_fork_in_child();

 private:
  // A queue to the device, for one hint at a time. Threads share a few of them: each may be a connection. On a cache
  // line of its own, because each hint that fetches takes its lock.
  struct alignas(64) Lane {
    Mutex mutex;
    std::unique_ptr<Fetcher> fetcher;  // made for the first hint that needs it

    // Waits for these pages, as far as they come through this lane.
    void finish(PageRun run);
    void finish_all();
  };
  static constexpr std::size_t kLanes = 8;
  static constexpr std::size_t kPagesTakenHere = 32;  // as the fault handler takes: 0.1 ms

  // What one hint asks for: pages, and of these the ones that are wanted now.
  struct Wanted {
    PageRun all, now;
    bool write;
    std::uint8_t priority;
    bool is_now(PageIndex page) const { return now.first <= page && page < now.end(); }
    bool is_written(PageIndex page) const { return write && is_now(page); }
  };

  void listen();
  Wanted pages_of(const Hint& hint) const;
  bool all_there(const Hint& hint, const Wanted& wanted);
  void tell_of_found(const Hint& hint, const Wanted& wanted);
  bool is_only_noted(const Hint& hint, const Wanted& wanted);
  bool is_on_its_way(PageRun run) const;
  void start(Lane& lane, const Wanted& wanted, Evictor& direct);
  void wait_for(PageRun run);
  Lane& take_lane();
  void leave(Lane& lane);
  std::uint32_t bit_of(const Lane& lane) const { return 1u << (&lane - lanes_.data()); }
  bool open(Lane& lane);
  void note_local(const Hint& hint);
  std::uint32_t bring_one_run(Lane& lane, const Wanted& wanted, PageIndex page, Evictor& direct);
  std::uint32_t fetch(Lane& lane, const Wanted& wanted, PageIndex page, PageWord word, Evictor& direct);
  void fetch_besides(Lane& lane, std::span<const PageIndex> pages);
  bool expects_write(PageIndex page, PageWord word, const Wanted& wanted);
  void keep_room(Evictor& direct);

  Core& core_;
  Bringer bringer_;
  std::array<Lane, kLanes> lanes_;
  // One bit a lane: taken, or with pages on their way. Set before the first of them is locked, so that who finds a
  // page busy finds the bit. Devices that are synchronous do without.
  std::atomic<std::uint32_t> active_{0};
  std::atomic<std::uint64_t> no_lane_until_ns_{0};  // one could not be made
  std::atomic<bool> failure_reported_{false};       // as a warning, once
  std::atomic<std::uint32_t> wanted_{0};            // futex: counts the calls for the gatherer
  std::atomic<bool> gatherer_sleeps_{false};
};

}  // namespace hinterland
