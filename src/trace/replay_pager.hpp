// The pager of replay: what becomes of pages, without memory, threads or time. Budget, policy, write forecast, second
// chance and all limits are the runtime's own; what moves pages is a model, as far as it shows in what faults. A test
// holds it to the real pager, access by access (replay_real_test.cpp).
//
// Reclaim in the background is thought to be as quick as need be: it is done before the next access.
#pragma once

#include <bitset>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hinterland/policy.h"
#include "paging/serve/bringer.hpp"
#include "trace/replay_far_space.hpp"
#include "trace/replay_frames.hpp"

namespace hinterland::trace {

struct ReplayHint;

struct ReplayPage {
  enum class State : std::uint8_t { untouched, resident, parked, far };
  State state = State::untouched;
  bool dirty = false;          // while resident or parked
  bool often_written = false;  // as the page word's bit
  bool ahead = false;          // brought before it was asked for, and not touched since
  bool zero = false;           // brought as zeros: as long as it is ahead, nobody has written to it
  // What the trace tells of it (replay_outlook.hpp):
  bool forgotten = false;                           // touched for the first time, next time
  bool only_read = false;                           // its last fault was a first touch, by a read
  std::uint64_t place = 0;                          // of its frame, while parked
  std::uint64_t last = 0;                           // access that the trace has of it
  std::uint64_t left = 0;                           // the access that evicted it
  std::uint64_t far_place = ReplayFarSpace::kNone;  // on the device
  bool was_dirty = false;                           // when it left
  const ReplayHint* hint = nullptr;                 // of its last access; nullptr: none
};

class ReplayPager {
 public:
  static constexpr std::uint32_t kRunMax = Fetcher::kRunMax;

  // `settings`: for the policy; must outlive it.
  ReplayPager(std::uint64_t local_bytes, const hl_policy_ops* policy, const char* settings, bool far_answers_at_once);
  ~ReplayPager();
  ReplayPager(const ReplayPager&) = delete;
  ReplayPager& operator=(const ReplayPager&) = delete;

  // False where it has no more room for pages, or the policy none for itself.
  bool has_room() const;
  // Valid until the next page that was never asked for.
  ReplayPage& page_at(std::uint64_t page);
  std::int64_t limit() const { return budget_.limit(); }
  // The longest run that a fault may bring.
  std::uint32_t run_max() const { return budget_.run_max(kRunMax); }

  // The program faults on a far page. `next` becomes the pages that the policy would bring as well, at most so many;
  // false where it leaves that to others.
  bool missed(std::uint64_t page, std::uint32_t most, std::vector<std::uint64_t>* next);
  // The same of a hint, which leaves nothing to others.
  void hinted(std::uint64_t page, std::uint32_t most, std::vector<std::uint64_t>* next);

  // Brings pages that are far, side by side. Those of [asked, asked_end) were asked for, the others come ahead.
  using Writable = std::bitset<kRunMax>;
  struct Fetch {
    std::uint64_t first = 0;
    std::uint32_t count = 0;
    std::uint64_t asked = 0, asked_end = 0;
    bool write = false;                 // how it is asked
    hl_arrival why = HL_ARRIVAL_FAULT;  // or by a hint
    std::uint8_t priority = 0;
    Writable writable = {};  // filled in by begin(): how each will be mapped
  };
  // Decides how they will be mapped, and makes room for them; finish() maps them.
  void begin(Fetch& wanted);
  void finish(const Fetch& wanted);
  // For a page that nobody waits for.
  bool has_room_for_one() const { return budget_.has_room(1); }
  // The same for pages that were never touched.
  void bring_zeros(std::uint64_t first, std::uint32_t count, std::uint64_t demanded);
  // Brings back a page that is parked.
  void take_back(std::uint64_t page, bool write, std::uint8_t priority);
  // The first write to a page that is clean.
  void note_written(std::uint64_t page);
  // The program gave it back, or it was all zero: like one that was never touched.
  void forget(std::uint64_t page);
  // The heap gives a page that was forgotten, and is there, to the program again (Transitions::renew()).
  void renew(std::uint64_t page);
  // What a fault found says where the page was: puts it there, whatever the model made of it.
  void put_far(std::uint64_t page);
  void put_into_frame(std::uint64_t page);
  // What is due after access number `now`. `left` becomes the pages that left since it was last called.
  void keep_room(std::uint64_t now, std::vector<std::uint64_t>* left);

  // For the policy: the time of the access that is next.
  void tick(std::uint64_t now_ns);

  std::uint64_t pages_out() const { return pages_out_; }

 private:
  using State = ReplayPage::State;
  struct Victim {
    std::uint64_t address;
    hl_page number;
    PolicyHost::WorthAFrame worth_a_frame;
  };

  void take_next(std::span<hl_page> wanted, std::vector<std::uint64_t>* next);
  void tell_arrived(hl_page number, hl_arrival why, std::uint8_t priority);
  void tell_departed(hl_page number);
  std::uint32_t choose(std::span<hl_page> out);
  hl_page number_of(std::uint64_t page);
  hl_page page_there(std::uint64_t place) const;
  static PageIndex index_of(std::uint64_t page) { return {static_cast<std::uint32_t>(page)}; }
  Writable expected_writes(const Fetch& wanted);
  bool expects_write(std::uint64_t page, bool samples);
  std::uint32_t adjacent(std::uint64_t first, std::uint32_t count);
  void map(const Fetch& wanted, std::uint64_t first, std::uint64_t end, bool writable);
  void make_room(std::uint32_t pages);
  std::size_t reclaim(std::size_t wanted);
  std::size_t take_round(std::size_t wanted, std::size_t* chosen);
  PolicyHost::WorthAFrame worth_a_frame(hl_page number) const;
  bool wants_frame(const Victim& victim);
  std::uint32_t let_go(const Victim& victim);
  std::uint32_t expire_what_is_due(bool gives_way, std::size_t missing);
  void note_leaves(const Victim& victim);
  void unmap(const Victim& victim);
  void place_on_device(std::span<const Victim> victims);
  void park(const Victim& victim);
  void far_now(hl_page number);

  const hl_policy_ops* ops_;
  void* policy_ = nullptr;
  std::vector<std::pair<void*, std::size_t>> reserved_;  // for the policy
  Budget budget_;
  SecondChance second_chance_;
  WriteForecast forecast_;
  bool has_forecast_ = false;
  ReplayFrames frames_;
  ReplayFarSpace far_space_;
  std::uint32_t park_sample_ = 0;
  WriteRecheck recheck_;
  std::uint64_t pages_out_ = 0;
  std::vector<std::uint64_t> left_;   // since keep_room()
  std::deque<hl_page> not_admitted_;  // are there, and leave first
  std::uint64_t next_tick_ns_ = 0;
  ChosenAhead ahead_;
  std::uint64_t came_ = 0;                             // pages that the policy was told of
  std::unordered_map<std::uint64_t, hl_page> groups_;  // of 16 pages, numbered as they come, as the page table does
  std::vector<ReplayPage> pages_;                      // by the policy's number
  std::vector<std::uint64_t> addresses_;               // by the policy's number
};

}  // namespace hinterland::trace
