// Brings pages in: reads them from the device, several requests at a time, and maps them as they arrive.
//
// A read fault maps a page protected and clean, so that it can leave again without being written; a write fault, or
// a page that was written last time it was here, maps it writable and dirty. Runs of pages are mapped with one call.
//
// They come in by COPY, in fresh memory: it can be protected from the first moment (between a MOVE and its
// protection, a write would go unseen, I3), and nobody else has ever had it (I7).
//
// Not thread-safe: belongs to one thread (the fault handler), which calls progress() while requests are in flight.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>

#include "paging/in/map_helper.hpp"
#include "paging/page/core.hpp"

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
  void hold_requests() { holds_ = !core_.devices.all_synchronous(); }
  void send_requests();

  // Gathers completions and maps what has come, until `most` fetches are complete or nothing is left. Never blocks.
  // True when something came; only after a false is it time for wait() or the descriptor.
  bool progress(unsigned most = kTransfers);
  // Until there is something for progress() to do. Not so the descriptor, while help is on its way: it does not show
  // that the helper is done.
  void wait(std::uint64_t timeout_ns);
  bool is_being_helped() const { return lending_ != 0; }
  std::uint32_t in_flight() const { return transfers_in_flight_; }
  // Whether a page of these is in flight.
  bool is_fetching(PageRun run) const;
  // A thread has waited for this page since then: counted as a fault's latency when the page is there. False when it
  // is not in flight.
  bool note_waiting(PageIndex page, std::uint64_t since_ns);
  // What poll(2) can wait for instead of wait(). Returns how many are written.
  std::size_t events(std::span<pollfd, far::kDevicesMax> out) const { return channels_->events(out); }

  // Long runs of clean pages may be mapped by it from now on, piece by piece, and read where the device answers at
  // once. Borrowed. Where the devices open no more channels it only maps.
  void let_help(MapHelper& helper);
  // Called by the helper. A piece's pages are busy, and counted in the budget, by the fetch that they are part of.
  void bring_piece(const MapHelper::Piece& piece) { bring_piece_by(helpers_channels_.get(), piece); }

 private:
  struct Transfer {
    PageRun run;
    PageIndex demanded;
    bool write = false;
    std::uint8_t priority = 0;
    bool active = false;
    bool unasked = false;      // nobody waits for it
    bool keeps_first = false;  // by start_ahead()
    bool lending = false;      // pieces of it are lent
    bool unread = false;       // it has not arrived: who brings a piece reads it
    std::uint32_t first_buffer = 0;
    const std::byte* direct = nullptr;  // bytes of its first page, in a device that is read where it lies
    std::uint32_t left = 0;             // requests not completed yet
    std::uint64_t started_ns = 0;
    // When faults on the page that was asked for, and on any other one, were read first. 0: there is none.
    std::uint64_t demanded_since_ns = 0, other_since_ns = 0;
    std::bitset<kRunMax> done;     // arrived and mapped, or failed
    std::bitset<kRunMax> arrived;  // arrived, not mapped yet
  };
  static constexpr unsigned kLooksForHelper = 2000;  // about as long as a piece takes
  static constexpr std::uint32_t kBuffers = 512;     // 2 MiB of local memory at most, and only if it is used

  // A page that was read ahead and not mapped. Good as long as its word says "fetched" and names the same far page.
  struct Kept {
    PageIndex page{};
    far::FarPage far{};
    bool used = false;
  };
  static constexpr std::uint32_t kKept = 32;  // as many as there are streams

  Fetcher(Core& core, For whom) : core_(core), whom_(whom) {}
  hl_arrival demanded_arrival() const { return whom_ == For::faults ? HL_ARRIVAL_FAULT : HL_ARRIVAL_HINT; }
  // Where the far copy of a page lies whose cell is locked.
  std::uint32_t device_of(PageIndex page) const { return core_.pages[page].load().far_page().device(); }
  bool is_direct(PageIndex page) const { return core_.devices.direct(device_of(page)); }
  const std::byte* direct_page(PageIndex page) const;
  PageRun part_on_device_of(PageRun run, PageIndex page);
  PageRun call_off_all_but(PageRun run, PageRun part);
  void start_direct(PageRun run, PageIndex demanded, bool write, std::uint8_t priority);
  std::int64_t copy(PageIndex page, const std::byte* bytes, std::size_t length, bool protect);
  bool take_buffers(std::uint32_t count, std::uint32_t* first);
  std::byte* place_of(const Transfer& transfer, std::uint32_t offset) const;
  Transfer* free_transfer();
  Transfer* prepare(PageRun run, PageIndex demanded, bool write);
  void keep_first(Transfer& transfer);
  bool map_kept(PageIndex page, bool write, std::uint8_t priority);
  std::byte* kept_bytes(std::uint32_t entry) const { return buffers_ + bytes_of_pages(kBuffers + entry); }
  void ask_for(Transfer& transfer);
  void send_held();
  bool gather();
  bool complete(const far::Completion& completion);
  void map_arrived(Transfer& transfer);
  hl_arrival arrival_of(const Transfer& transfer, std::uint32_t offset, std::uint32_t count) const;
  bool lend(Transfer& transfer, std::uint32_t offset, std::uint32_t count);
  bool is_worth_two(const Transfer& transfer);
  bool read_by_two(Transfer& transfer);
  void bring_piece_by(far::Channels* channels, const MapHelper::Piece& piece);
  std::bitset<kRunMax> read_piece(far::Channels& channels, const MapHelper::Piece& piece);
  void give_up(const Transfer& transfer, PageIndex page, int error);
  void end(Transfer& transfer);
  bool end_lent();
  bool take_back();
  bool map_direct_by_two(PageRun run, PageIndex demanded, bool write, std::uint8_t priority);
  void map_direct(PageRun run, PageIndex demanded, bool write, std::uint8_t priority);
  void finish_with_helper();
  const std::byte* source_of(const Transfer& transfer, std::uint32_t offset) const;
  void map_part(const Transfer& transfer, std::uint32_t offset, std::uint32_t count, bool protect, hl_arrival why);
  void map_run(PageIndex first, std::uint32_t count, const void* bytes, bool protect, hl_arrival why,
               std::uint8_t priority);
  bool wants_protection(PageIndex page, PageIndex demanded, bool write);

  Core& core_;
  const For whom_;
  std::uint32_t direct_fetches_ = 0;
  std::unique_ptr<far::Channels> channels_;
  std::byte* buffers_ = nullptr;  // kBuffers pages, then kKept
  std::array<Kept, kKept> kept_{};
  std::uint32_t next_kept_ = 0;
  std::bitset<kBuffers> buffers_used_;
  std::array<Transfer, kTransfers> transfers_;
  std::uint32_t transfers_in_flight_ = 0;
  MapHelper* helper_ = nullptr;
  std::unique_ptr<far::Channels> helpers_channels_;  // the helper's thread alone uses them; nullptr: it only maps
  std::uint32_t lending_ = 0;                        // transfers
  std::uint32_t mapped_by_helper_ = 0;               // as of the last look
  std::array<std::atomic<std::uint32_t>, kTransfers> pieces_left_{};  // of each transfer, lent and not mapped yet
  std::array<far::Completion, 64> done_;  // gathered; of these the first done_next_ are dealt with
  std::size_t done_next_ = 0, done_count_ = 0;
  bool holds_ = false;
  std::uint32_t held_count_ = 0;
  std::array<far::Request, 2 * kRunMax> held_;  // requests that are to be sent
  WriteRecheck recheck_;
};

}  // namespace hinterland
