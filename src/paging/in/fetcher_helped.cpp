// Fetcher: long runs of clean pages, which a second thread helps to map (docs/adr/0031-runs-are-mapped-by-two.md).
#include <algorithm>
#include <utility>

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
  if (transfer.direct == nullptr && core_.devices.synchronous(device_of(transfer.run.first + offset))) return false;
  auto index = static_cast<std::uint32_t>(&transfer - transfers_.data());
  if (!std::exchange(transfer.lending, true)) ++lending_;
  for (std::uint32_t at = offset, end = offset + count_of_pages; at < end; at += kPiece) {
    MapHelper::Piece piece{this, index, at, std::min(kPiece, end - at)};
    pieces_left_[index].fetch_add(1, std::memory_order_relaxed);  // the helper's lock orders it with who maps it
    if (!helper_->lend(piece)) map_piece(piece);
  }
  return true;
}

void Fetcher::map_piece(const MapHelper::Piece& piece) {
  const Transfer& transfer = transfers_[piece.transfer];
  map_run(transfer.run.first + piece.offset, piece.count, source_of(transfer, piece.offset), true,
          arrival_of(transfer, piece.offset, piece.count), transfer.priority);
  pieces_left_[piece.transfer].fetch_sub(1, std::memory_order_release);  // pairs with end_lent()
}

// Those of which the last piece has been mapped.
bool Fetcher::end_lent() {
  if (lending_ == 0) return false;
  mapped_by_helper_ = helper_->mapped();  // before the look, so that wait() misses nothing
  bool any = false;
  for (std::uint32_t index = 0; index < kTransfers; ++index) {
    Transfer& transfer = transfers_[index];
    if (!transfer.active || !transfer.lending) continue;
    if (pieces_left_[index].load(std::memory_order_acquire) != 0) continue;  // pairs with map_piece()
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
  piece.fetcher->map_piece(piece);
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

// Nothing is in flight when it returns. Looks for a while before it sleeps: the helper has one piece left.
void Fetcher::finish_with_helper() {
  for (unsigned looks = 0; lending_ != 0; ++looks)
    if (!end_lent() && !take_back() && looks > kLooksForHelper) helper_->wait(mapped_by_helper_, 100'000'000);
}

}  // namespace hinterland
