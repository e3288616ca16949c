// Takes pages out of local memory: chooses victims, takes them from the program, writes back what is dirty, and
// gives the memory to the kernel. (Eden 3.3 and 3.4, Hermit 4.4: batch everything.)
//
// Clean victims are protected and equal to their far copy (I3), so they are simply unmapped, many with one flush.
// Dirty ones are taken with MOVE: atomic, so no write is lost (I2), and without protecting them first. Those of
// memory that may not be written are protected, and moved while it may be written for a moment (ADR 0080). A page
// that MOVE cannot take (or the kernel has no MOVE) is protected, copied and unmapped.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "paging/page/core.hpp"

namespace hinterland {

class Evictor {
 public:
  static constexpr std::uint32_t kBatchMax = 256;  // one flush for this many; more brings no more (the floor)
  static constexpr int kRoundsMax = 16;            // of one call to reclaim(): the work of a call is bounded
  static constexpr PageIndex kNoPage{~std::uint64_t{0}};

  static Result<std::unique_ptr<Evictor>> create(Core& core);

  // Makes about `wanted` pages of local memory free. Returns how many became free; 0 when nothing could be taken
  // (all pinned, or the device refuses). Thread-safe. May block for the device when it is not synchronous.
  // `spared` stays: the page that a thread is about to use. Where all others stay too, it would come and go for ever.
  std::size_t reclaim(std::size_t wanted, PageIndex spared = kNoPage);

  // The same in two steps, by two threads: takes pages from the program, which costs less on some CPUs than on others
  // (ADR 0015), and leaves what has to be written for settle_taken(). Returns how many were taken; nothing when what
  // was taken before is not settled yet. At most kBatchMax. Until they are settled the pages are busy.
  std::optional<std::size_t> take(std::size_t wanted, PageIndex spared = kNoPage);
  void settle_taken();
  // The same without waiting: false when there is something to settle and somebody else is at work here. Who reclaims
  // may wait for frames that another evictor has taken and not settled.
  bool try_settle_taken();

  Mutex& mutex() { return mutex_; }

 private:
  struct Victim {
    PageIndex page;
    PageWord word;  // as it was when it was locked
    std::uint32_t frame = 0;
    far::FarPage far{};
    bool write = false;      // on its way to the device
    bool allocated = false;  // `far` was taken for it
    int error = 0;
    PolicyHost::WorthAFrame worth_a_frame = PolicyHost::WorthAFrame::as_usual;
  };
  using Victims = std::span<Victim>;

  explicit Evictor(Core& core) : core_(core) {}

  void settle_locked();
  std::ptrdiff_t take_round(std::size_t wanted, std::size_t* chosen);
  bool wait_for_frames();                  // true: one may be had now
  std::size_t choose(std::size_t wanted);  // fills chosen_, sorted by page
  bool accept(PageIndex page, Victim* victim);
  bool must_stay(PageIndex page, PageWord word) const;
  bool is_full(std::uint32_t device) const;
  std::uint32_t blocked_devices() const;
  std::size_t drop_without_frame(Victims victims);  // unmaps; returns pages freed
  Victims discarded_one_by_one(Victims victims);
  std::size_t take_into_frames(Victims victims);  // how many of the first were taken (or let go)
  std::int64_t take_run(Victims run, FrameRun frames);
  std::int64_t move_run(Victims run, std::uint32_t frame);
  std::int64_t take_unwritable_run(Victims run, std::uint32_t frame);
  std::int64_t move_shared_ones_too(std::uintptr_t target, std::uintptr_t source, std::size_t bytes);
  bool take_by_copy(Victim& victim, std::uint32_t frame);
  void refuse(const Victim& victim);
  void after_refused_move(Victim& victim, std::uint32_t frame, std::int64_t error);
  void settle();  // writes back what was taken, then parks it
  void write_back(Victims taken);
  std::size_t take_space(Victims taken, std::uint32_t device, std::span<far::Request> requests);
  void send(Victims taken, std::span<const far::Request> requests);
  void note_whether_full(Victims taken, std::uint32_t devices);
  // Where a page goes that has no far copy.
  std::uint32_t device_of(PageIndex page) const {
    return core_.devices.count() == 1 ? 0 : core_.policy.device_of(page);
  }
  std::uint32_t device_of(const Victim& victim) const { return device_of(victim.page); }
  void gather(Victims taken, std::size_t outstanding);
  void note_written(const Victim& victim);
  bool leaves_at_once(const Victim& victim) const;
  void let_go(Victims taken);          // written, or clean: parks them, or gives their frames back
  void restore(const Victim& victim);  // could not be written: give it back to the program
  void ask_what_is_worth_a_frame(Victims victims);
  bool saves_a_fetch(const Victim& victim) const;
  std::uint32_t expire_frames(std::uint32_t max, std::uint32_t places = FrameRing::kAllPlaces);
  std::uint32_t free_now(std::uint32_t frames);
  std::uint32_t expire_dropped();
  std::uint32_t expire_what_is_due(bool gives_way, std::size_t missing);
  void empty_frames_of_the_lost();
  std::uint32_t surplus_frames();
  bool wants_frame(const Victim& victim);
  void report_device_error(std::uint32_t device, int error);

  Core& core_;
  Mutex mutex_;
  std::unique_ptr<far::Channels> channels_;
  std::array<Victim, kBatchMax> chosen_;
  std::array<Victim, kBatchMax> taken_;
  std::size_t taken_count_ = 0;  // not settled yet
  std::atomic<bool> has_taken_{false};
  alignas(kPageSize) std::array<std::byte, kPageSize> bounce_{};
  // Local pages freed in this round on side ways; below zero where pages were restored by a copy, and are local twice
  // until their frames expire.
  std::ptrdiff_t freed_aside_ = 0;
  std::uint32_t park_sample_ = 0;
  PageIndex spared_ = kNoPage;  // of this call
  std::size_t flushes_ = 0;     // of this round, as FlushShare counts them
  // A device had no space: dirty pages that would go there stay until then; 0: it has.
  std::array<std::uint64_t, far::kDevicesMax> full_until_ns_{};
};

}  // namespace hinterland
