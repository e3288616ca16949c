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

// Copies what lives in a block behind the first `used` units of a page. The units of the page that are used then.
std::uint32_t FarLog::gather(std::uint64_t number, Port& port, std::byte* to, std::uint32_t used,
                             std::vector<Moved>* moved) {
  Moved move{number, nullptr, {}, used};
  UnitMap before;
  bool in_place;
  std::uint32_t base;
  {
    Block& candidate = block(number);
    HeldBlock held(candidate);
    if (candidate.record == nullptr || candidate.open ||
        candidate.record->live_units.load(std::memory_order_relaxed) > fullest_ ||
        used + candidate.live_units > kBlockUnits)
      return used;
    move.from = candidate.record;
    move.from->holders.fetch_add(1, std::memory_order_relaxed);  // under the lock: the block's own keeps it
    move.kept = candidate.live;
    in_place = candidate.kept == nullptr;
    if (!in_place) before = *candidate.kept;
    base = candidate.base_unit;
  }
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
  for (std::uint32_t unit = 0; unit < kBlockUnits; ++unit) {
    if ((move.kept[unit / 64] >> unit % 64 & 1) == 0) continue;
    const std::uint32_t at = in_place ? unit : base + units_before(before, unit);
    std::memcpy(to + std::size_t{used++} * kUnit, from + std::size_t{at} * kUnit, kUnit);
  }
  moved->push_back(move);
  return used;
}

// The page is written: the blocks lie there from now on, as far as they are still what they were.
void FarLog::publish(PageRecord* record, const std::vector<Moved>& moved) {
  for (const Moved& move : moved) {
    Block& each = block(move.block);
    {
      HeldBlock held(each);
      // The record is held, so this is no other that came to lie at the same address.
      if (each.record == move.from) {
        count(Counter::object_cleaned_bytes, std::uint64_t{each.live_units} * kUnit);
        record->holders.fetch_add(1, std::memory_order_relaxed);  // under the lock, and we hold it
        record->live_units.fetch_add(each.live_units, std::memory_order_relaxed);
        move.from->live_units.fetch_sub(each.live_units, std::memory_order_relaxed);
        if (each.kept == nullptr) each.kept = new UnitMap;
        *each.kept = move.kept;
        each.base_unit = static_cast<std::uint16_t>(move.base_unit);
        each.record = record;
        unpin(move.from);  // the block's
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
    used = gather(hand_, port, to, used, &moved);
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
