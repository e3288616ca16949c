#include "object/far_writer.hpp"

#include <cerrno>
#include <cstring>

namespace hinterland::object {

FarWriter::~FarWriter() {
  if (stash_at_ < stashed_) log_.space_->release(std::span(stash_).subspan(stash_at_, stashed_ - stash_at_));
}

bool FarWriter::take_page(far::FarPage* page) {
  if (stash_at_ == stashed_) {
    stash_at_ = 0;
    stashed_ = static_cast<std::uint32_t>(log_.space_->allocate(stash_, &error_));
    if (stashed_ == 0) {
      if (error_ == 0) error_ = ENOSPC;
      return false;
    }
    error_ = 0;
  }
  *page = stash_[stash_at_++];
  return true;
}

// Records of at most so many units are kept off the middle of a block, where less than as many stay unused: of the
// block 6 % at most. Larger ones are not worth that.
constexpr std::uint32_t kApartUnitsMax = kBlockUnits / 16;

Location FarWriter::place(const std::byte* bytes, std::uint32_t object_units) {
  const std::uint32_t units = log_.check_units() + object_units;  // of the record
  if (used_ < kHalfUnits && used_ + units > kHalfUnits && units <= kApartUnitsMax) used_ = kHalfUnits;
  if (open_ == 0 || used_ + units > kBlockUnits) {
    if (full()) return 0;
    far::FarPage page;
    if (!take_page(&page)) return 0;
    const std::uint64_t number = log_.new_block(page);
    if (number == 0) {
      log_.space_->release({&page, 1});
      error_ = ENOSPC;
      return 0;
    }
    // What is left over of a page goes out with it: never what another program's object held.
    std::memset(port_->page(open_), 0, kPageSize);
    pages_[open_] = page;
    blocks_[open_++] = number;
    used_ = 0;
  }
  const std::uint64_t number = blocks_[open_ - 1];
  std::byte* to = port_->page(open_ - 1) + std::size_t{used_} * kUnit;
  Block& block = log_.block(number);
  {
    HeldBlock held(block);
    if (log_.check_units() != 0) {
      const std::uint64_t check = FarLog::check_of(FarLog::seed_of(block, used_), object_units, bytes);
      std::memcpy(to, &check, sizeof check);
      to += kUnit;
    }
    set_units(block.live, used_, units, true);
    block.joined = block.joined || (used_ < kHalfUnits && used_ + units > kHalfUnits);
    for_halves(block, used_, units, [](Block::Half& half, std::uint32_t count) {
      half.live_units = static_cast<std::uint16_t>(half.live_units + count);
      half.record->live_units.fetch_add(count, std::memory_order_relaxed);
    });
  }
  std::memcpy(to, bytes, std::size_t{object_units} * kUnit);
  log_.live_units_.fetch_add(units, std::memory_order_relaxed);
  const Location location = number * kBlockUnits + used_;
  used_ += units;
  return location;
}

std::uint32_t FarWriter::flush() {
  if (open_ == 0) return 0;
  errors_.fill(0);
  const std::uint32_t failed = port_->transfer(far::Operation::write, std::span(pages_).first(open_), errors_);
  for (std::uint32_t i = 0; i < open_; ++i) {
    if (errors_[i] != 0) error_ = errors_[i];
    log_.seal(blocks_[i]);
  }
  open_ = 0;
  return failed;
}

}  // namespace hinterland::object
