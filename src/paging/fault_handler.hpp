// Serves faults (message mode): reads messages, many at a time, and brings each page to where it can be used.
//
// One thread. It never waits for one fetch while others can go on: requests to slow devices are in flight while more
// messages are read. It follows the faulting threads to their CPU, because waking it there costs 4 us and waking it
// on another CPU of a virtual machine 70 (FACTS.md 2). (Eden 3.2 "Unhinted path"; ExtMem 3.2.1 on what the hand-over
// costs.)
#pragma once

#include <atomic>
#include <memory>

#include "paging/core.hpp"
#include "paging/evictor.hpp"
#include "paging/fetcher.hpp"
#include "paging/handler_placement.hpp"
#include "paging/spin_budget.hpp"
#include "paging/streams.hpp"

namespace hinterland {

class FaultHandler {
 public:
  static Result<std::unique_ptr<FaultHandler>> create(Core& core, ProgramThreads& threads, Evictor& direct);

  // The thread's body: serves until the process ends.
  void run();
  // Serves one message; run() calls it, and tests of the page machine do.
  void serve(const FaultMessage& message);
  bool progress() { return fetcher_->progress(); }
  HandlerPlacement& placement() { return placement_; }
  std::uint32_t in_flight() const { return fetcher_->in_flight(); }

  // Fork needs a moment without anything in flight: stops reading messages, waits for what is under way, and keeps
  // the handler out until resume().
  void pause();
  void resume();

 private:
  // At most this long the next fault waits for reclaim: 0.1 ms. More bring nothing (FACTS.md 2).
  static constexpr std::size_t kPagesTakenHere = 32;

  FaultHandler(Core& core, ProgramThreads& threads, Evictor& direct)
      : core_(core), placement_(threads), direct_(direct), streams_(core.read_ahead_pages_max) {}

  void serve_page(const FaultMessage& message);
  void observe(const FaultMessage& message, FaultKind kind);
  int wait_for_faults();
  void wait_for_arrivals();
  void serve_resident(PageIndex page, PageWord word, const FaultMessage& message);
  void serve_untouched(PageIndex page, const FaultMessage& message);
  void serve_parked(PageIndex page, PageWord word, bool write);
  void serve_far(PageIndex page, PageWord word, bool write);
  PageWord arriving(PageIndex page, PageWord word);
  bool expects_write(PageIndex page, PageWord word);
  PageRun lock_around(PageIndex page, PageRun wanted, PageState state);
  void map_zeros(PageRun run, bool write);
  void make_room(std::uint32_t pages);
  void keep_room();

  Core& core_;
  HandlerPlacement placement_;
  Evictor& direct_;
  std::unique_ptr<Fetcher> fetcher_;
  Streams streams_;
  Mutex working_;                         // held while messages are served or requests are in flight
  std::atomic<std::uint32_t> paused_{0};  // futex
  std::array<FaultMessage, 64> messages_;
  SpinBudget spin_;
};

}  // namespace hinterland
