#include "object/far_log.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "base/raw_call.hpp"

namespace hinterland::object {
namespace {

class HeldBlock {
 public:
  explicit HeldBlock(Block& block) : block_(block) {
    // acquire: pairs with the release below. Held for some instructions, so a thread that waits longer was caught
    // while another is not running.
    for (int spins = 0; block_.held.exchange(1, std::memory_order_acquire) != 0; ++spins)
      spins % 64 == 63 ? static_cast<void>(raw::call(SYS_sched_yield)) : __builtin_ia32_pause();
  }
  ~HeldBlock() { block_.held.store(0, std::memory_order_release); }
  HeldBlock(const HeldBlock&) = delete;
  HeldBlock& operator=(const HeldBlock&) = delete;

 private:
  Block& block_;
};

void set_units(UnitMap& map, std::uint32_t first, std::uint32_t count, bool value) {
  for (std::uint32_t unit = first; unit < first + count;) {
    const std::uint32_t bit = unit % 64, run = std::min(64 - bit, first + count - unit);
    const std::uint64_t mask = (run == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << run) - 1) << bit;
    value ? map[unit / 64] |= mask : map[unit / 64] &= ~mask;
    unit += run;
  }
}

std::uint32_t units_before(const UnitMap& map, std::uint32_t unit) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < unit / 64; ++i) count += static_cast<std::uint32_t>(std::popcount(map[i]));
  if (unit % 64 == 0) return count;
  return count + static_cast<std::uint32_t>(std::popcount(map[unit / 64] & ((std::uint64_t{1} << unit % 64) - 1)));
}

}  // namespace

Result<std::unique_ptr<FarLog>> FarLog::create(std::unique_ptr<far::Device> device, std::uint64_t far_bytes_max) {
  std::unique_ptr<FarLog> log(new FarLog(std::move(device)));
  auto space = far::Space::create(*log->device_, far_bytes_max);
  if (!space) return std::unexpected(space.error());
  log->space_ = std::move(*space);
  log->blocks_max_ = far_bytes_max / kPageSize;
  const std::intptr_t table = raw::call(SYS_mmap, 0, static_cast<long>(page_ceil(log->blocks_max_ * sizeof(Block))),
                                        PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw::failed(table))
    return std::unexpected(Error::make(static_cast<int>(-table), "no addresses for the table of far objects")
                               .remedy("raise the limit on them: ulimit -v"));
  log->blocks_ = reinterpret_cast<Block*>(table);
  return log;
}

FarLog::~FarLog() {
  if (blocks_ == nullptr) return;
  for (Reader& reader : readers_) forget(reader);
  for (std::uint64_t number = 1; number < next_number_; ++number) {
    Block& block = blocks_[number];
    if (block.record != nullptr) unpin(block.record);
    delete block.kept;
  }
  raw::call(SYS_munmap, raw::word_of(blocks_), static_cast<long>(page_ceil(blocks_max_ * sizeof(Block))));
}

std::uint64_t FarLog::new_block(far::FarPage page) {
  std::uint64_t number = 0;
  {
    LockGuard guard(numbers_mutex_);
    if (!free_numbers_.empty()) {
      number = free_numbers_.back();
      free_numbers_.pop_back();
    } else if (next_number_ < blocks_max_) {
      number = next_number_++;
    }
  }
  if (number == 0) return 0;
  HeldBlock held(block(number));
  Block& fresh = block(number);
  fresh.record = new PageRecord{page, 1, 0};
  fresh.open = true;
  fresh.base_unit = 0;
  pages_held_.fetch_add(1, std::memory_order_relaxed);
  return number;
}

void FarLog::seal(std::uint64_t number) {
  Block& sealed = block(number);
  HeldBlock held(sealed);
  sealed.open = false;
  if (sealed.live_units == 0) retire_locked(number, sealed);
}

void FarLog::retire_locked(std::uint64_t number, Block& block) {
  unpin(block.record);
  delete block.kept;
  block.record = nullptr;
  block.kept = nullptr;
  LockGuard guard(numbers_mutex_);
  free_numbers_.push_back(number);
}

void FarLog::unpin(PageRecord* record, std::uint32_t count) {
  // acq_rel: the last holder's reads of the page come before it is given back.
  if (record->holders.fetch_sub(count, std::memory_order_acq_rel) != count) return;
  if (!copy_) space_->release({&record->page, 1});
  pages_held_.fetch_sub(1, std::memory_order_relaxed);
  delete record;
}

FarLog::Pin FarLog::pin(Location location) {
  Block& found = block(location / kBlockUnits);
  const auto unit = static_cast<std::uint32_t>(location % kBlockUnits);
  HeldBlock held(found);
  HL_CHECK(found.record != nullptr);                              // who asks owns a live object in it
  found.record->holders.fetch_add(1, std::memory_order_relaxed);  // under the lock: the block's own keeps it
  return {found.record, found.kept == nullptr ? unit : found.base_unit + units_before(*found.kept, unit)};
}

void FarLog::free(Location location, std::uint32_t units) {
  const std::uint64_t number = location / kBlockUnits;
  Block& found = block(number);
  HeldBlock held(found);
  set_units(found.live, static_cast<std::uint32_t>(location % kBlockUnits), units, false);
  found.live_units = static_cast<std::uint16_t>(found.live_units - units);
  found.record->live_units.fetch_sub(units, std::memory_order_relaxed);
  live_units_.fetch_sub(units, std::memory_order_relaxed);
  if (found.live_units == 0 && !found.open) retire_locked(number, found);
}

void FarLog::free_large(LargeObject* object) {
  if (!copy_) space_->release(object->pages);
  large_pages_.fetch_sub(object->pages.size(), std::memory_order_relaxed);
  delete object;
}

// --- reading
// ---------------------------------------------------------------------------------------------------------

FarLog::Reader FarLog::borrow_reader(int* error) {
  {
    LockGuard guard(readers_mutex_);
    if (!readers_.empty()) {
      Reader reader = std::move(readers_.back());
      readers_.pop_back();
      return reader;
    }
  }
  auto port = Port::open(*device_);
  if (port) return {std::move(*port), nullptr};
  *error = port.error().code() != 0 ? port.error().code() : EIO;
  return {};
}

void FarLog::return_reader(Reader reader) {
  LockGuard guard(readers_mutex_);
  readers_.push_back(std::move(reader));
}

void FarLog::forget(Reader& reader) {
  if (reader.holds != nullptr) unpin(std::exchange(reader.holds, nullptr));
}

int FarLog::read_page(const Pin& pin, std::uint32_t units, std::byte* to) {
  const std::size_t at = pin.unit * kUnit;
  if (device_->info().direct) {
    std::memcpy(to, static_cast<const std::byte*>(device_->direct_page(pin.record->page)) + at, units * kUnit);
    return 0;
  }
  int error = 0;
  Reader reader = borrow_reader(&error);
  if (reader.port == nullptr) return error;
  // A page does not change while its record is held.
  if (reader.holds != pin.record) {
    forget(reader);
    reader.port->transfer(far::Operation::read, {&pin.record->page, 1}, {&error, 1});
    if (error == 0) {
      pin.record->holders.fetch_add(1, std::memory_order_relaxed);  // the pin keeps it
      reader.holds = pin.record;
    }
  }
  if (error == 0) std::memcpy(to, reader.port->page(0) + at, units * kUnit);
  return_reader(std::move(reader));
  return error;
}

int FarLog::read(Location location, std::uint32_t units, std::byte* to) {
  const Pin found = pin(location);
  const int error = read_page(found, units, to);
  unpin(found.record);
  return error;
}

void FarLog::read_many(std::span<Wanted> wanted) {
  if (device_->info().direct) {
    for (Wanted& each : wanted) each.error = read(each.location, each.units, each.to);
    return;
  }
  int failure = 0;
  Reader reader = borrow_reader(&failure);
  Port* const port = reader.port.get();
  forget(reader);
  while (!wanted.empty()) {
    std::array<Pin, Port::kPages> pins;
    std::array<std::uint32_t, Port::kPages> slot;  // of wanted[i], the page that it is on
    std::array<far::FarPage, Port::kPages> pages;
    std::array<int, Port::kPages> errors;
    errors.fill(failure);
    const std::size_t count = std::min<std::size_t>(wanted.size(), Port::kPages);
    std::uint32_t used = 0;
    for (std::size_t i = 0; i < count; ++i) {
      pins[i] = pin(wanted[i].location);
      const auto* known = std::find(pages.begin(), pages.begin() + used, pins[i].record->page);
      slot[i] = static_cast<std::uint32_t>(known - pages.begin());
      if (slot[i] == used) pages[used++] = pins[i].record->page;
    }
    if (port != nullptr) port->transfer(far::Operation::read, std::span(pages).first(used), errors);
    for (std::size_t i = 0; i < count; ++i) {
      wanted[i].error = errors[slot[i]];
      if (wanted[i].error == 0)
        std::memcpy(wanted[i].to, port->page(slot[i]) + pins[i].unit * kUnit, wanted[i].units * kUnit);
      unpin(pins[i].record);
    }
    wanted = wanted.subspan(count);
  }
  if (port != nullptr) return_reader(std::move(reader));
}

int FarLog::read_large(const LargeObject& object, std::byte* to) {
  int error = 0;
  Reader reader = borrow_reader(&error);
  Port* const port = reader.port.get();
  if (port == nullptr) return error;
  forget(reader);
  std::array<int, Port::kPages> errors;
  for (std::size_t first = 0; first < object.pages.size() && error == 0; first += Port::kPages) {
    const auto pages =
        std::span(object.pages).subspan(first, std::min<std::size_t>(Port::kPages, object.pages.size() - first));
    port->transfer(far::Operation::read, pages, errors);
    for (std::size_t i = 0; i < pages.size() && error == 0; ++i) {
      error = errors[i];
      const std::uint64_t at = (first + i) * kPageSize;
      if (error == 0)
        std::memcpy(to + at, port->page(static_cast<std::uint32_t>(i)),
                    std::min<std::uint64_t>(kPageSize, object.bytes - at));
    }
  }
  return_reader(std::move(reader));
  return error;
}

// --- cleaning
// --------------------------------------------------------------------------------------------------------

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

// --- writing
// ---------------------------------------------------------------------------------------------------------

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

Location FarWriter::place(const std::byte* bytes, std::uint32_t units) {
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
  std::memcpy(port_->page(open_ - 1) + std::size_t{used_} * kUnit, bytes, std::size_t{units} * kUnit);
  Block& block = log_.block(number);
  {
    HeldBlock held(block);
    set_units(block.live, used_, units, true);
    block.live_units = static_cast<std::uint16_t>(block.live_units + units);
    block.record->live_units.fetch_add(units, std::memory_order_relaxed);
  }
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
