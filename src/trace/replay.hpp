// What a trace's faults would have been with another budget, policy or read-ahead: the real policies and the real
// stream detection over a model of the pager, without the program.
//
// The trace has only the accesses that faulted when it was recorded, so it says nothing of a smaller budget, nor of
// less read-ahead than it was recorded with: record with the smallest --local, --read-ahead 0 and --takeover start.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "hinterland/policy.h"
#include "paging/core.hpp"
#include "paging/streams.hpp"
#include "trace/trace_file.hpp"

namespace hinterland::trace {

struct ReplayOptions {
  std::uint64_t local_bytes = 0;
  const hl_policy_ops* policy = nullptr;
  std::uint32_t read_ahead_pages = 0;
  std::uint32_t recorded_read_ahead_pages = 0;  // for sequential hints: such steps may be gaps in the trace only
};

struct ReplayResult {
  std::uint64_t accesses = 0;     // in the trace: all that missed when it was recorded
  std::uint64_t hits = 0;         // of these, on pages that would be local
  std::uint64_t first_touch = 0;  // faults, by kind
  std::uint64_t fetches = 0;      // of far pages
  std::uint64_t refaults = 0;
  std::uint64_t protection = 0;      // first writes to clean pages; not among faults()
  std::uint64_t hinted_fetches = 0;  // calls instead of faults
  std::uint64_t hinted_refaults = 0;
  std::uint64_t hinted_protection = 0;
  std::uint64_t pages_in = 0;    // read-ahead included
  std::uint64_t pages_out = 0;   // written
  std::uint64_t ahead = 0;       // pages that nobody had asked for yet
  std::uint64_t ahead_used = 0;  // of these, touched before they left
  std::uint64_t faults() const { return first_touch + fetches + refaults; }
  std::uint64_t hinted() const { return hinted_fetches + hinted_refaults + hinted_protection; }
};

// What a hint before an access would say (hinterland/hint.h).
struct ReplayHint {
  bool write = false, sequential = false;
  std::int32_t read_ahead = 0;    // pages
  std::uint32_t pages_after = 0;  // that its size takes in, behind the page of its address
  std::uint8_t priority = 0;
};

class Replay {
 public:
  explicit Replay(const ReplayOptions& options);
  ~Replay();
  void fault(const FaultRecord& record) { access(record, nullptr, nullptr); }
  // The same, with a hint before the access. `last_page` is what a sequential hint remembers: of one place in the
  // program and one thread, 0 at first.
  void access(const FaultRecord& record, const ReplayHint* hint, std::uint64_t* last_page);
  const ReplayResult& result() const { return result_; }

 private:
  enum class State : std::uint8_t { untouched, resident, parked, far };
  struct Page {
    hl_page number = 0;  // the policy's
    State state = State::untouched;
    bool dirty = false;
    bool ahead = false;        // brought before it was asked for, and not touched since
    std::uint32_t parked = 0;  // how many times so far
  };

  Page& page_at(std::uint64_t page);
  void touch(Page& page, const FaultRecord& record, const ReplayHint* hint);
  void bring(std::uint64_t page, Page& found, const FaultRecord& record, const ReplayHint* hint, std::int64_t ahead);
  std::uint32_t bring_run(std::uint64_t page, State from, hl_arrival why);
  std::uint32_t bring_hinted(std::uint64_t page, const ReplayHint& hint, std::int64_t ahead);
  bool take(std::uint64_t page, State from, hl_arrival why, std::uint8_t priority);
  std::int64_t read_ahead_of(const ReplayHint& hint, std::uint64_t page, std::uint64_t* last_page) const;
  void keep_budget();
  void evict(hl_page number);
  void expire(std::size_t parked_most);
  bool wants_frame(const Page& page);

  ReplayOptions options_;
  ReplayResult result_;
  Streams streams_;
  Budget budget_;
  SecondChance second_chance_;
  std::uint32_t park_sample_ = 0;
  void* policy_ = nullptr;
  std::vector<std::pair<void*, std::size_t>> reserved_;  // for the policy
  std::unordered_map<std::uint64_t, hl_page> groups_;    // of 16 pages, numbered as they come, as the page table does
  std::vector<Page> pages_;                              // by the policy's number
  std::vector<std::uint64_t> addresses_;                 // by the policy's number
  struct Parked {
    hl_page number;
    std::uint32_t time;  // as Page::parked was then
  };
  std::deque<Parked> parked_;  // oldest first; some have come back since
  std::size_t parked_count_ = 0;
  std::uint64_t first_page_ = 0;  // of the window that streams look at
};

}  // namespace hinterland::trace
