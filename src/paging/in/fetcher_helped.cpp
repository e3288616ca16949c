// Fetcher: long runs of clean pages, which a second thread helps to map (docs/adr/0031-runs-are-mapped-by-two.md,
// docs/adr/0089-runs-are-unpacked-by-two.md).
#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "paging/in/fetcher.hpp"

namespace hinterland {

const std::byte* Fetcher::source_of(const Transfer& transfer, std::uint32_t offset) const {
  return transfer.direct != nullptr ? transfer.direct + bytes_of_pages(offset) : place_of(transfer, offset);
}

// Clean pages in buffers that go on the way a piece at a time. False: they are not worth it.
bool Fetcher::lend(Transfer& transfer, std::uint32_t offset, std::uint32_t count_of_pages) {
  constexpr std::uint32_t kPiece = MapHelper::kPiecePages;
  if (helper_ == nullptr || count_of_pages < 2 * kPiece || !helper_->ready()) return false;
  // A device that answers at once: nobody looks after a fetch that is not over when start() returns.
  if (transfer.direct == nullptr && !transfer.unread &&
      core_.devices.synchronous(device_of(transfer.run.first + offset)))
    return false;
  auto index = static_cast<std::uint32_t>(&transfer - transfers_.data());
  if (!std::exchange(transfer.lending, true)) ++lending_;
  for (std::uint32_t at = offset, end = offset + count_of_pages; at < end; at += kPiece) {
    MapHelper::Piece piece{this, index, at, std::min(kPiece, end - at)};
    pieces_left_[index].fetch_add(1, std::memory_order_relaxed);  // the helper's lock orders it with who maps it
    if (!helper_->lend(piece)) bring_piece_by(channels_.get(), piece);
  }
  return true;
}

// `channels`: of the thread that calls this.
void Fetcher::bring_piece_by(far::Channels* channels, const MapHelper::Piece& piece) {
  const Transfer& transfer = transfers_[piece.transfer];
  std::bitset<kRunMax> failed;
  if (transfer.unread) {
    failed = read_piece(*channels, piece);
    if (transfer.demanded.value - transfer.run.first.value - piece.offset < piece.count)
      stat_page()->fetch_latency.add(now_ns() - transfer.started_ns);
  }
  for (std::uint32_t at = piece.offset, end = piece.offset + piece.count; at < end;) {
    std::uint32_t length = 0;
    while (at + length < end && !failed[at + length]) ++length;
    if (length != 0)
      map_run(transfer.run.first + at, length, source_of(transfer, at), true, arrival_of(transfer, at, length),
              transfer.priority);
    at += length + 1;
  }
  pieces_left_[piece.transfer].fetch_sub(1, std::memory_order_release);  // pairs with end_lent()
}

// From a device that answers at once, so nobody waits in here. Those that could not be read are given up, and
// returned, by their places in the run.
std::bitset<Fetcher::kRunMax> Fetcher::read_piece(far::Channels& channels, const MapHelper::Piece& piece) {
  const Transfer& transfer = transfers_[piece.transfer];
  std::bitset<kRunMax> failed;
  auto fail = [&](std::uint32_t offset, int error) {
    failed.set(offset);
    give_up(transfer, transfer.run.first + offset, error);
  };
  std::array<far::Request, MapHelper::kPiecePages> requests;
  for (std::uint32_t i = 0; i < piece.count; ++i)
    requests[i] = {far::Operation::read, core_.pages[transfer.run.first + (piece.offset + i)].load().far_page(),
                   place_of(transfer, piece.offset + i), piece.offset + i};
  std::array<far::Completion, MapHelper::kPiecePages> done;
  for (std::uint32_t sent = 0, answered = 0; answered < piece.count;) {
    if (sent < piece.count) {
      int accepted = channels.submit(std::span(requests).subspan(sent, piece.count - sent));
      if (accepted < 0)
        for (; sent < piece.count; ++sent, ++answered)
          fail(static_cast<std::uint32_t>(requests[sent].tag), -accepted);
      else
        sent += static_cast<std::uint32_t>(accepted);
    }
    int count_done = channels.poll(done);
    for (int i = 0; i < count_done; ++i, ++answered)
      if (done[static_cast<std::size_t>(i)].error != 0)
        fail(static_cast<std::uint32_t>(done[static_cast<std::size_t>(i)].tag),
             done[static_cast<std::size_t>(i)].error);
  }
  count(Counter::device_bytes_in, bytes_of_pages(piece.count - failed.count()));
  return failed;
}

// Those of which the last piece has been mapped.
bool Fetcher::end_lent() {
  if (lending_ == 0) return false;
  mapped_by_helper_ = helper_->mapped();  // before the look, so that wait() misses nothing
  bool any = false;
  for (std::uint32_t index = 0; index < kTransfers; ++index) {
    Transfer& transfer = transfers_[index];
    if (!transfer.active || !transfer.lending) continue;
    if (pieces_left_[index].load(std::memory_order_acquire) != 0) continue;  // pairs with bring_piece_by()
    --lending_;
    end(transfer);
    any = true;
  }
  return any;
}

// Nothing has come: maps a piece that the helper has not begun.
bool Fetcher::take_back() {
  MapHelper::Piece piece;
  if (lending_ == 0 || !helper_->take(&piece)) return false;
  piece.fetcher->bring_piece_by(channels_.get(), piece);
  return true;
}

void Fetcher::wait(std::uint64_t timeout_ns) {
  if (lending_ != 0) return helper_->wait(mapped_by_helper_, timeout_ns);
  channels_->wait(timeout_ns);
}

// A long run of clean pages that lie together on the device: the helper maps some of it meanwhile, from the second
// piece on. False: it is not such a run.
bool Fetcher::map_direct_by_two(PageRun run, PageIndex demanded, bool write, std::uint8_t priority) {
  constexpr std::uint32_t kPiece = MapHelper::kPiecePages;
  if (helper_ == nullptr || run.count < 3 * kPiece || transfers_in_flight_ != 0) return false;
  const std::byte* source = direct_page(run.first);
  for (std::uint32_t i = 0; i < run.count; ++i)
    if (!wants_protection(run.first + i, demanded, write) || direct_page(run.first + i) != source + bytes_of_pages(i))
      return false;
  Transfer& transfer = transfers_[0];
  transfer = {};
  transfer.run = run;
  transfer.demanded = demanded;
  transfer.priority = priority;
  transfer.direct = source;
  if (!lend(transfer, kPiece, run.count - kPiece)) return false;
  transfer.active = true;
  ++transfers_in_flight_;
  helper_->call();
  map_run(run.first, kPiece, source, true, arrival_of(transfer, 0, kPiece), priority);
  finish_with_helper();
  return true;
}

void Fetcher::let_help(MapHelper& helper) {
  helper_ = &helper;
  if (!core_.devices.all_synchronous() || core_.devices.direct(0)) return;
  if (auto channels = core_.devices.open_channels()) helpers_channels_ = std::move(*channels);
}

// Long enough that both bring some of it, from a device that answers at once (a region's may not), and to be mapped
// alike.
bool Fetcher::is_worth_two(const Transfer& transfer) {
  if (helpers_channels_ == nullptr || transfer.run.count < 3 * MapHelper::kPiecePages || transfers_in_flight_ != 1)
    return false;
  if (!core_.devices.synchronous(device_of(transfer.demanded))) return false;
  for (std::uint32_t i = 0; i < transfer.run.count; ++i)
    if (!wants_protection(transfer.run.first + i, transfer.demanded, transfer.write)) return false;
  return true;
}

// As map_direct_by_two(), for a run that has to be read first, from a device that answers at once: reading takes
// longer than mapping where pages are unpacked.
bool Fetcher::read_by_two(Transfer& transfer) {
  constexpr std::uint32_t kPiece = MapHelper::kPiecePages;
  if (!is_worth_two(transfer)) return false;
  transfer.unread = true;
  transfer.left = 0;
  if (!lend(transfer, kPiece, transfer.run.count - kPiece)) {
    transfer.unread = false;
    transfer.left = transfer.run.count;
    return false;
  }
  helper_->call();
  auto index = static_cast<std::uint32_t>(&transfer - transfers_.data());
  pieces_left_[index].fetch_add(1, std::memory_order_relaxed);  // this thread's own
  bring_piece_by(channels_.get(), {this, index, 0, kPiece});
  finish_with_helper();
  return true;
}

// Nothing is in flight when it returns. Looks for a while before it sleeps: the helper has one piece left.
void Fetcher::finish_with_helper() {
  for (unsigned looks = 0; lending_ != 0; ++looks)
    if (!end_lent() && !take_back() && looks > kLooksForHelper) helper_->wait(mapped_by_helper_, 100'000'000);
}

}  // namespace hinterland
