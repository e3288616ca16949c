// What a trace's faults would have been with another budget, policy or read-ahead: the real policies and the real
// stream detection over a model of the pager (replay_pager.hpp), without the program.
//
// The trace has only the accesses that faulted when it was recorded, so it says nothing of a smaller budget, nor of
// less read-ahead than it was recorded with: record with the smallest --local, --read-ahead 0 and --takeover start.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "hinterland/policy.h"
#include "paging/in/streams.hpp"
#include "trace/replay_outlook.hpp"
#include "trace/replay_pager.hpp"
#include "trace/replay_result.hpp"
#include "trace/trace_file.hpp"

namespace hinterland::trace {

struct ReplayOptions {
  std::uint64_t local_bytes = 0;
  const hl_policy_ops* policy = nullptr;
  std::string policy_settings;  // as hl_policy_env::settings
  std::uint32_t read_ahead_pages = 0;
  std::uint32_t recorded_read_ahead_pages = 0;  // for sequential hints: such steps may be gaps in the trace only
  bool far_answers_at_once = true;              // mem: and zmem: (docs/adr/0025-pages-that-come-back-soon-stay.md)
  bool follows = false;  // the trace as it was recorded: where a fault says that a page was, there it was
  std::shared_ptr<const ReplayOutlook> outlook = {};  // of the trace; without it, memory is taken never to be freed
};

// As the trace was recorded, without an outlook; no policy where the one recorded with is not known here.
ReplayOptions recorded_settings(const TraceFile& trace);

// Of the device that a trace was recorded over.
inline bool answers_at_once(const std::string& far_url) {
  return far_url.starts_with("mem:") || far_url.starts_with("zmem:");
}

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
  // All of the trace's faults, from the first one on.
  void fault(const FaultRecord& record) { access(record, nullptr, nullptr); }
  // The same, with a hint before the access. `last_page` is what a sequential hint remembers: of one place in the
  // program and one thread, 0 at first. Both must outlive the replay: accesses that the trace has not get the hint of
  // the page's last one.
  void access(const FaultRecord& record, const ReplayHint* hint, std::uint64_t* last_page);
  const ReplayResult& result() const { return result_; }
  // The number of the access that made a page leave; of the next one where it is there, 0 where it never was.
  std::uint64_t left(std::uint64_t page);
  bool is_there(std::uint64_t page) { return pager_.page_at(page).state == State::resident; }

 private:
  using State = ReplayPage::State;

  void follow(const FaultRecord& record);
  void access_unseen();
  void access_left_out(std::uint64_t number, const ReplayHint* hint, std::uint64_t* last_page);
  void give_back(std::uint64_t number);
  void finish(std::uint64_t number);
  void serve(const FaultRecord& record, const ReplayHint* hint, std::uint64_t* last_page);
  void bring_far(const FaultRecord& record);
  void bring(const FaultRecord& record, const ReplayHint* hint, std::int64_t ahead);
  void touch(std::uint64_t page, const FaultRecord& record, const ReplayHint* hint);
  struct Run {
    std::uint64_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t wanted = 0;  // pages, by the stream; those in other states are left out
    std::int32_t stride = 0;   // of a stream that steps over pages: so many more, each so far from the one before
    std::uint32_t steps = 0;
  };
  Run run_around(std::uint64_t page, State state);
  bool is_in(State state, std::uint64_t page);
  void bring_hinted(std::uint64_t page, const ReplayHint& hint, std::int64_t ahead);
  static PageIndex index_of(std::uint64_t page) { return {static_cast<std::uint32_t>(page)}; }  // for streams
  void fetch(ReplayPager::Fetch wanted);
  std::uint32_t fetch_unasked(std::uint64_t asked);
  void note_fetched(const ReplayPager::Fetch& wanted);
  std::int64_t read_ahead_of(const ReplayHint& hint, std::uint64_t page, std::uint64_t* last_page) const;

  ReplayOptions options_;
  ReplayResult result_;
  std::uint64_t accesses_ = 0;  // so far, of any kind
  // Accesses that the trace has not (replay_outlook.hpp), the next one on top; of the same time in the order in which
  // they were seen before. A sequential hint remembers their pages apart from those of the trace.
  struct Unseen {
    std::uint64_t time, page, last;
    bool operator>(const Unseen& other) const {
      return std::tie(time, last, page) > std::tie(other.time, other.last, other.page);
    }
  };
  std::unordered_map<const ReplayHint*, std::uint64_t> last_unseen_;
  std::priority_queue<Unseen, std::vector<Unseen>, std::greater<>> unseen_;
  std::size_t next_touch_ = 0, next_freed_ = 0;  // of the outlook
  std::vector<std::uint64_t> left_;              // pages, by the last access
  std::vector<std::uint64_t> next_;              // that the policy would read next
  Streams streams_;
  ReplayPager pager_;
};

}  // namespace hinterland::trace
