// Serves faults (message mode): reads messages, many at a time, and brings each page to where it can be used.
//
// A thread each; of several handlers (handler_team.hpp) each serves what it happens to read. None waits for one fetch
// while others can go on: requests to slow devices are in flight while more messages are read. A handler follows the
// faulting threads to their CPU, because waking it there costs 4 us and waking it on another CPU of a virtual machine
// 70 (ADR 0002). (Eden 3.2 "Unhinted path"; ExtMem 3.2.1 on what the hand-over costs.)
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>

#include "paging/in/fetcher.hpp"
#include "paging/in/streams.hpp"
#include "paging/out/evictor.hpp"
#include "paging/out/settler.hpp"
#include "paging/page/core.hpp"
#include "paging/place/handler_placement.hpp"
#include "paging/place/spin_budget.hpp"
#include "paging/serve/bringer.hpp"

namespace hinterland {

class FaultHandler {
 public:
  // `first`: null for handler 0; for a spare one, handler 0, with which it shares what is known of streams.
  static Result<std::unique_ptr<FaultHandler>> create(Core& core, const HandlerPlace& place, Settler& settler,
                                                      Evictor& direct, FaultHandler* first);

  // The thread's body: serves until the process ends.
  void run();
  // Blocks until that thread has opened what it needs: a file has a low number until it is moved up, which would be
  // missing to a program that goes on meanwhile, and for good where the program leaves no high ones (RLIMIT_NOFILE).
  void wait_until_it_runs();
  // The same for a spare handler: serves while it is called to a thread (attendance.hpp).
  void run_spare();
  // Serves one message, or several (at least one) whose pages are asked for together; run() calls these, and tests of
  // the page machine do.
  void serve(const FaultMessage& message);
  void serve_all(std::span<const FaultMessage> messages);
  bool progress() { return fetcher_->progress(); }
  HandlerPlacement& placement() { return placement_; }
  // Before its thread starts.
  void let_help(MapHelper& helper) { fetcher_->let_help(helper); }
  std::uint32_t in_flight() const { return fetcher_->in_flight(); }

  // --- signal mode (signal_faults.hpp): no thread of its own, but one after another of the program's
  bool try_enter() { return working_.try_lock(); }
  void enter() { working_.lock(); }
  void leave() { working_.unlock(); }
  // Between enter() and leave(). As serve(), and nothing is on its way when it returns.
  void serve_here(const FaultMessage& message);

  // Fork needs a moment without anything in flight: stops reading messages, waits for what is under way, and keeps
  // the handler out until resume().
  void pause();
  void resume();

 private:
  // At most this long the next fault waits for reclaim: 0.1 ms. More bring nothing (ADR 0015).
  static constexpr std::size_t kPagesTakenHere = 32;
  // Unchanged pages, by one call: half of that (ADR 0035).
  static constexpr std::size_t kCleanPagesTakenHere = 128;
  static constexpr unsigned kScatteredFrom = 64;  // fetches of single pages in a row

  // A fault that comes meanwhile waits for so many at most; and then it is looked for.
  static constexpr std::size_t kPagesTakenAtLeisure = 8;
  static constexpr unsigned kFaultsWithoutPause = 1024, kLookEvery = 16;

  // A thread that computes for long is left alone after so many looks in vain, about 1 ms.
  static constexpr unsigned kLooksInVain = 4096;

  static constexpr unsigned kWaitsBeforeBlocking = 16;

  FaultHandler(Core& core, const HandlerPlace& place, Settler& settler, Evictor& direct, FaultHandler* first)
      : core_(core),
        bringer_(core),
        place_(place),
        placement_(place),
        settler_(settler),
        direct_(direct),
        // In signal mode nobody would take in what is asked for ahead.
        own_streams_(core.read_ahead_pages_max, !core.faults_by_signal),
        streams_(first == nullptr ? own_streams_ : first->own_streams_) {}

  void serve_page(const FaultMessage& message);
  void note_latency(const FaultMessage& message, std::uint64_t read_ns);
  void finish();
  void observe(const FaultMessage& message, FaultKind kind, bool expects_write = false);
  std::span<FaultMessage> room_for_messages();
  std::span<const FaultMessage> received(int count) const {
    return std::span(messages_).first(static_cast<std::size_t>(count));
  }
  void serve_crowd(std::size_t count);
  std::size_t gather_crowd(std::size_t count);
  std::uint64_t serve_while_called();
  void serve_until_idle(int count);
  int wait_for_faults();
  int wait_for_faults_or_arrivals();
  int look_for_faults();
  int sleep_until_fault_or_arrival();
  void serve_resident(PageIndex page, PageWord word, const FaultMessage& message);
  void serve_untouched(PageIndex page, const FaultMessage& message);
  void serve_parked(PageIndex page, PageWord word, bool writable);
  void serve_far(PageIndex page, PageWord word, bool write, bool expects_write);
  std::uint32_t run_max(PageIndex page);
  StreamWindow stream_of(PageIndex page);
  void read_ahead(const StreamWindow& window);
  bool read_window_ahead(PageRun wanted);
  std::uint32_t read_in_steps(PageIndex page, const StreamWindow& window);
  bool ask_unasked(PageIndex page, std::uint32_t* asked);
  void read_chosen(std::span<const PageIndex> pages);
  void map_zeros(PageRun run, bool write);
  void make_room(std::uint32_t pages);
  bool reads_before_room(std::uint32_t pages, bool at_once);
  bool reclaims_here() const;
  bool takes_clean_pages_here();
  void keep_room(PageIndex served);
  int make_room_at_leisure();
  std::optional<std::size_t> take_here(PageIndex served);

  Core& core_;
  Bringer bringer_;
  const HandlerPlace place_;
  HandlerPlacement placement_;
  Settler& settler_;
  Evictor& direct_;
  std::unique_ptr<Fetcher> fetcher_;
  SharedStreams own_streams_;
  SharedStreams& streams_;
  Mutex working_;                         // held while messages are served or requests are in flight
  std::atomic<std::uint32_t> paused_{0};  // futex
  std::atomic<std::uint32_t> runs_{0};    // futex; 1 once run() has opened what it needs
  std::array<FaultMessage, 64> messages_;
  // Of more threads than one read tells of. Not touched until there are so many.
  static constexpr std::size_t kCrowdMax = 4096;
  static constexpr unsigned kLookForCrowdEvery = 64;
  std::array<FaultMessage, kCrowdMax> crowd_;
  SpinBudget spin_;
  unsigned single_pages_ = 0;  // fetches in a row without read-ahead
  unsigned reads_beside_others_ = 0;
  bool in_crowd_ = false;            // faults come in the order of their addresses, which is none of the program's
  bool left_waiting_ = false;        // the last fault: others have its page in their hands, and will wake the thread
  unsigned faults_since_pause_ = 0;  // of the program, in which room could be made
  unsigned waits_since_poll_ = kWaitsBeforeBlocking;  // waits for faults since the last one for requests as well
};

}  // namespace hinterland
