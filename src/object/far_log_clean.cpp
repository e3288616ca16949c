// Cleaning the far log: what lives on pages that are mostly dead is packed onto others.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/stats.hpp"
#include "object/far_log.hpp"

namespace hinterland::object {

bool FarLog::worth_cleaning() const {
  const std::uint64_t live = live_units_.load(std::memory_order_relaxed);
  // Some pages more or less are not worth the work: those that writers have open are among them.
  constexpr std::uint64_t kSlackPages = 128;
  return pages_held() > kSlackPages + live / kBlockUnits * 6 / 5;
}

// Whether what lives in that half, or in both, is to be moved: what of it, and how it lies now. The page is held
// then.
bool FarLog::choose(Moved* move, Block* as_it_is) {
  Block& candidate = block(move->block);
  HeldBlock held(candidate);
  const Block::Half& half = candidate.halves[move->first];
  if (half.record == nullptr || candidate.open || candidate.joined != (move->halves == 2) ||
      half.record->live_units.load(std::memory_order_relaxed) > fullest_)
    return false;
  std::uint32_t live = 0;
  for (std::uint32_t i = 0; i < move->halves; ++i) live += candidate.halves[move->first + i].live_units;
  if (move->base_unit + live > kBlockUnits) return false;
  move->from = half.record;
  move->from->holders.fetch_add(1, std::memory_order_relaxed);  // under the lock: the half's own keeps it
  constexpr std::size_t kWords = kHalfUnits / 64;
  std::copy_n(candidate.live.begin() + move->first * kWords, move->halves * kWords,
              move->kept.begin() + move->first * kWords);
  as_it_is->halves = candidate.halves;
  if (candidate.kept != nullptr) *as_it_is->kept = *candidate.kept;
  return true;
}

// Copies what lives in a half of a block, or in both, behind the first `used` units of a page. The units of the page
// that are used then.
std::uint32_t FarLog::gather(std::uint64_t number, std::uint32_t first, std::uint32_t halves, Port& port,
                             std::byte* to, std::uint32_t used, std::vector<Moved>* moved) {
  Moved move{number, nullptr, {}, used, first, halves};
  UnitMap kept{};
  Block as_it_is{};
  as_it_is.kept = &kept;
  if (!choose(&move, &as_it_is)) return used;
  const std::byte* from = nullptr;
  int error = 0;
  if (device_->info().direct) {
    from = static_cast<const std::byte*>(device_->direct_page(move.from->page));
  } else {
    port.transfer(far::Operation::read, {&move.from->page, 1}, {&error, 1});
    from = port.page(0);
  }
  if (error != 0) {  // left where it is: its objects' owners will hear of it
    unpin(move.from);
    return used;
  }
  for (std::uint32_t unit = first * kHalfUnits; unit < (first + halves) * kHalfUnits; ++unit) {
    if ((move.kept[unit / 64] >> unit % 64 & 1) == 0) continue;
    std::memcpy(to + std::size_t{used++} * kUnit, from + std::size_t{place_of(as_it_is, unit)} * kUnit, kUnit);
  }
  moved->push_back(move);
  return used;
}

std::uint32_t FarLog::gather_block(std::uint64_t number, Port& port, std::byte* to, std::uint32_t used,
                                   std::vector<Moved>* moved) {
  bool joined;
  {
    HeldBlock held(block(number));
    joined = block(number).joined;  // it may be so no more when it is gathered: then it is left for the next time
  }
  if (joined) return gather(number, 0, 2, port, to, used, moved);
  used = gather(number, 0, 1, port, to, used, moved);
  return gather(number, 1, 1, port, to, used, moved);
}

// The page is written: the halves lie there from now on, as far as they are still what they were.
void FarLog::publish(PageRecord* record, const std::vector<Moved>& moved) {
  for (const Moved& move : moved) {
    Block& each = block(move.block);
    {
      HeldBlock held(each);
      std::uint32_t base = move.base_unit;
      for (std::uint32_t number = move.first; number < move.first + move.halves; ++number) {
        Block::Half& half = each.halves[number];
        const std::uint32_t begin = number * kHalfUnits, end = begin + kHalfUnits;
        const std::uint32_t kept = units_before(move.kept, end) - units_before(move.kept, begin);
        // The record is held, so this is no other that came to lie at the same address.
        if (half.record == move.from) {
          count(Counter::object_cleaned_bytes, std::uint64_t{half.live_units} * kUnit);
          record->holders.fetch_add(1, std::memory_order_relaxed);  // under the lock, and we hold it
          record->live_units.fetch_add(half.live_units, std::memory_order_relaxed);
          move.from->live_units.fetch_sub(half.live_units, std::memory_order_relaxed);
          if (each.kept == nullptr) each.kept = new UnitMap{};
          std::copy_n(move.kept.begin() + begin / 64, kHalfUnits / 64, each.kept->begin() + begin / 64);
          half = {record, half.live_units, static_cast<std::uint16_t>(base), true};
          unpin(move.from);  // the half's
        }
        base += kept;
      }
    }
    unpin(move.from);  // gather's
  }
}

bool FarLog::clean(Port& port) {
  if (!worth_cleaning()) return false;
  // Pages that are fuller than most are left alone: they win little, and will be emptier later.
  fullest_ = live_units_.load(std::memory_order_relaxed) / std::max<std::uint64_t>(pages_held(), 1);
  std::uint64_t end;
  {
    LockGuard guard(numbers_mutex_);
    end = next_number_;
  }
  // The last page of the port: gather() reads into the first.
  std::byte* to = port.page(Port::kPages - 1);
  std::vector<Moved> moved;
  std::uint32_t used = 0;
  for (std::uint64_t looked = 0; looked < end && used < kBlockUnits * 7 / 8; ++looked) {
    if (++hand_ >= end) hand_ = 1;
    used = gather_block(hand_, port, to, used, &moved);
  }
  const bool from_several =
      std::any_of(moved.begin(), moved.end(), [&](const Moved& move) { return move.from != moved[0].from; });
  if (!from_several) {  // nothing would be won
    for (const Moved& move : moved) unpin(move.from);
    return false;
  }
  far::FarPage page;
  int error = 0;
  if (space_->allocate({&page, 1}, &error) == 1) {
    std::memcpy(port.page(0), to, kPageSize);
    port.transfer(far::Operation::write, {&page, 1}, {&error, 1});
    if (error == 0) {
      auto* record = new PageRecord{page, 1, 0};
      pages_held_.fetch_add(1, std::memory_order_relaxed);
      publish(record, moved);
      unpin(record);  // ours
      return true;
    }
    space_->release({&page, 1});
  }
  for (const Moved& move : moved) unpin(move.from);
  return false;
}

}  // namespace hinterland::object
