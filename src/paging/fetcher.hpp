// Brings pages in: reads them from the device, several requests at a time, and maps them as they arrive.
//
// A read fault maps a page protected and clean, so that it can leave again without being written; a write fault, or
// a page that was written last time it was here, maps it writable and dirty. Runs of pages are mapped with one call.
//
// Where a run is to be writable and frames can be borrowed, the device reads into those, and they are moved to the
// program: nothing is copied, allocated or given back. Pages that are to be protected are copied in, protected from
// the first moment: between a MOVE and its protection, a write would go unseen (I3).
//
// Not thread-safe: belongs to one thread (the fault handler), which calls progress() while requests are in flight.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>

#include "paging/core.hpp"

namespace hinterland {

class Fetcher {
 public:
  static constexpr std::uint32_t kRunMax = 64;
  static constexpr std::uint32_t kTransfers = 64;  // fetches at a time

  // Whether somebody waits in a fault, or only announced what he will want. Then a page that cannot be had is not
  // given up: the fault, if it comes, will do that.
  enum class For : std::uint8_t { faults, hints };
  static Result<std::unique_ptr<Fetcher>> create(Core& core, For whom = For::faults);
  ~Fetcher();

  // Starts fetching pages whose cells are locked, in state arriving, and counted in the budget. `demanded` is the
  // page that was asked for, `write` how. The cells are unlocked as the pages arrive. Fetches at least the demanded
  // page; may fetch fewer than the whole run when buffers are short (then the rest is unlocked again).
  // `priority` is the policy's, for all of them.
  void start(PageRun run, PageIndex demanded, bool write, std::uint8_t priority = 0);

  // The same for pages that nobody asked for yet. The first of them is not mapped but kept, its cell unlocked as far
  // and fetched: start() finds it when it is asked for. False when buffers are short, and then they are far again.
  bool start_ahead(PageRun run);
  // One page that nobody asked for yet, and that is mapped when it arrives. Likewise.
  bool start_unasked(PageIndex page);
  // Whether the page is the first of a run that is on its way ahead.
  bool is_marker(PageIndex page) const;

  // Between these, requests are collected: those of several fetches go to the device together, which costs little
  // more than those of one. Whatever waits for completions meanwhile sends them first. A device that answers at once
  // is asked at once all the same.
  void hold_requests() { holds_ = !core_.device->info().synchronous; }
  void send_requests();

  // Gathers completions and maps what has come, until `most` fetches are complete or nothing is left. Never blocks.
  // True when something came; only after a false is it time for wait() or the descriptor.
  bool progress(unsigned most = kTransfers);
  void wait(std::uint64_t timeout_ns) { channel_->wait(timeout_ns); }
  std::uint32_t in_flight() const { return transfers_in_flight_; }
  // Whether a page of these is in flight.
  bool is_fetching(PageRun run) const;
  int event_descriptor() const { return channel_->event_descriptor(); }

 private:
  struct Transfer {
    PageRun run;
    PageIndex demanded;
    bool write = false;
    std::uint8_t priority = 0;
    bool active = false;
    bool unasked = false;      // nobody waits for it
    bool keeps_first = false;  // by start_ahead()
    std::uint32_t first_buffer = 0;
    FrameRun frames;         // borrowed, one for each page, instead of buffers; count 0: none
    std::uint32_t left = 0;  // requests not completed yet
    std::uint64_t started_ns = 0;
    std::bitset<kRunMax> done;     // arrived and mapped, or failed
    std::bitset<kRunMax> arrived;  // arrived, not mapped yet
  };
  static constexpr std::uint32_t kBuffers = 512;  // 2 MiB of local memory at most, and only if it is used

  // A page that was read ahead and not mapped. Good as long as its word says "fetched" and names the same far page.
  struct Kept {
    PageIndex page{};
    far::FarPage far{};
    bool used = false;
  };
  static constexpr std::uint32_t kKept = 32;  // as many as there are streams

  Fetcher(Core& core, For whom) : core_(core), whom_(whom) {}
  hl_arrival demanded_arrival() const { return whom_ == For::faults ? HL_ARRIVAL_FAULT : HL_ARRIVAL_HINT; }
  const std::byte* direct_page(PageIndex page) const;
  void start_direct(PageRun run, PageIndex demanded, bool write, std::uint8_t priority);
  std::int64_t copy(PageIndex page, const std::byte* bytes, std::size_t length, bool protect);
  bool take_buffers(std::uint32_t count, std::uint32_t* first);
  FrameRun borrow_frames(PageRun run, PageIndex demanded, bool write);
  std::byte* place_of(const Transfer& transfer, std::uint32_t offset) const;
  Transfer* free_transfer();
  void unlock_rest(PageRun run);
  Transfer* prepare(PageRun run, PageIndex demanded, bool write);
  void keep_first(Transfer& transfer);
  bool map_kept(PageIndex page, bool write, std::uint8_t priority);
  std::byte* kept_bytes(std::uint32_t entry) const { return buffers_ + bytes_of_pages(kBuffers + entry); }
  void ask_for(Transfer& transfer);
  void send_held();
  bool gather();
  bool complete(const far::Completion& completion);
  void map_arrived(Transfer& transfer);
  void map_part(const Transfer& transfer, std::uint32_t offset, std::uint32_t count, bool protect, hl_arrival why);
  void map_run(PageIndex first, std::uint32_t count, const void* bytes, bool protect, hl_arrival why,
               std::uint8_t priority);
  void move_run(PageIndex first, FrameRun filled, hl_arrival why, std::uint8_t priority);
  void publish(PageIndex page, bool protect);
  void mapped_behind_our_back(PageIndex page, bool something_there);
  bool wants_protection(PageIndex page, PageIndex demanded, bool write);
  void lose(PageIndex page, int error);

  Core& core_;
  const For whom_;
  std::uint32_t direct_fetches_ = 0;
  std::unique_ptr<far::Channel> channel_;
  std::byte* buffers_ = nullptr;  // kBuffers pages, then kKept
  std::array<Kept, kKept> kept_{};
  std::uint32_t next_kept_ = 0;
  std::bitset<kBuffers> buffers_used_;
  std::uint32_t next_buffer_ = 0;
  std::array<Transfer, kTransfers> transfers_;
  std::uint32_t transfers_in_flight_ = 0;
  std::array<far::Completion, 64> done_;  // gathered; of these the first done_next_ are dealt with
  std::size_t done_next_ = 0, done_count_ = 0;
  bool holds_ = false;
  std::uint32_t held_count_ = 0;
  std::array<far::Request, 2 * kRunMax> held_;  // requests that are to be sent
  std::uint32_t recheck_ = 0;
};

}  // namespace hinterland
