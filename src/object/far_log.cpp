#include "object/far_log.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/page_hash.hpp"
#include "base/raw_call.hpp"

namespace hinterland::object {

FarLog::FarLog(std::unique_ptr<far::Device> device) : device_(std::move(device)) {
  // Memory of this machine is copied from, and nobody changes it on the way.
  check_units_ = device_->info().ranges && !device_->info().direct ? 1 : 0;
  begin_seeds();
}

// Others than those of any process before: with fewer random bits, what another has left behind could pass.
void FarLog::begin_seeds() {
  if (check_units_ == 0) return;
  if (::getrandom(&next_seed_, sizeof next_seed_, 0) != sizeof next_seed_)
    next_seed_ = now_ns() * 0x9e3779b97f4a7c15 ^ static_cast<std::uint64_t>(::getpid());
  next_seed_ &= ~std::uint64_t{0} << 2 * kUnitBits;
}

std::uint64_t FarLog::check_of(std::uint64_t seed, std::uint32_t units, const std::byte* object) {
  return bytes_hash(object, units * kUnit, seed | units);
}

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
  if (Status able = log->copy_mark_.create(); !able) return std::unexpected(able.error());
  return log;
}

FarLog::~FarLog() {
  if (blocks_ == nullptr) return;
  for (Reader& reader : readers_) forget(reader);
  for (std::uint64_t number = 1; number < next_number_; ++number) {
    Block& block = blocks_[number];
    for (const Block::Half& half : block.halves)
      if (half.record != nullptr) unpin(half.record);
    delete block.kept;
  }
  raw::call(SYS_munmap, raw::word_of(blocks_), static_cast<long>(page_ceil(blocks_max_ * sizeof(Block))));
}

std::uint64_t FarLog::new_block(far::FarPage page) {
  std::uint64_t number = 0, seed;
  {
    LockGuard guard(numbers_mutex_);
    seed = next_seed_;
    next_seed_ += std::uint64_t{1} << 2 * kUnitBits;
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
  auto* record = new PageRecord{page, 2, 0};  // the halves
  for (Block::Half& half : fresh.halves) half = {record, 0, 0, false};
  fresh.seed = seed;
  fresh.open = true;
  fresh.joined = false;
  pages_held_.fetch_add(1, std::memory_order_relaxed);
  return number;
}

void FarLog::seal(std::uint64_t number) {
  Block& sealed = block(number);
  HeldBlock held(sealed);
  sealed.open = false;
  for (Block::Half& half : sealed.halves)
    if (half.live_units == 0) retire_locked(number, sealed, half);
}

void FarLog::retire_locked(std::uint64_t number, Block& block, Block::Half& half) {
  unpin(std::exchange(half.record, nullptr));
  block.joined = false;  // what lay across the middle is dead
  if (block.halves[0].record != nullptr || block.halves[1].record != nullptr) return;
  delete std::exchange(block.kept, nullptr);
  LockGuard guard(numbers_mutex_);
  free_numbers_.push_back(number);
}

void FarLog::unpin(PageRecord* record, std::uint32_t count) {
  // acq_rel: the last holder's reads of the page come before it is given back.
  if (record->holders.fetch_sub(count, std::memory_order_acq_rel) != count) return;
  give_back({&record->page, 1});
  pages_held_.fetch_sub(1, std::memory_order_relaxed);
  delete record;
}

FarLog::Pin FarLog::pin(Location location) {
  Block& found = block(location / kBlockUnits);
  const auto unit = static_cast<std::uint32_t>(location % kBlockUnits);
  HeldBlock held(found);
  PageRecord* const record = found.half_of(unit).record;
  HL_CHECK(record != nullptr);                              // who asks owns a live object in it
  record->holders.fetch_add(1, std::memory_order_relaxed);  // under the lock: the half's own keeps it
  return {record, place_of(found, unit), seed_of(found, unit)};
}

void FarLog::free(Location location, std::uint32_t units) {
  const std::uint64_t number = location / kBlockUnits;
  Block& found = block(number);
  HeldBlock held(found);
  const auto unit = static_cast<std::uint32_t>(location % kBlockUnits);
  units += check_units_;
  set_units(found.live, unit, units, false);
  live_units_.fetch_sub(units, std::memory_order_relaxed);
  for_halves(found, unit, units, [&](Block::Half& half, std::uint32_t count) {
    half.live_units = static_cast<std::uint16_t>(half.live_units - count);
    half.record->live_units.fetch_sub(count, std::memory_order_relaxed);
    if (half.live_units == 0 && !found.open) retire_locked(number, found, half);
  });
}

void FarLog::give_back(std::span<const far::FarPage> pages) {
  if (!is_copy()) space_->release(pages);
}

void FarLog::add_large(LargeObject* object) {
  large_pages_.fetch_add(object->pages.size(), std::memory_order_relaxed);
  large_bytes_.fetch_add(object->bytes, std::memory_order_relaxed);
  LockGuard guard(large_mutex_);
  object->next = large_;
  if (large_ != nullptr) large_->before = object;
  large_ = object;
}

void FarLog::free_large(LargeObject* object) {
  {
    LockGuard guard(large_mutex_);
    (object->before != nullptr ? object->before->next : large_) = object->next;
    if (object->next != nullptr) object->next->before = object->before;
  }
  give_back(object->pages);
  large_pages_.fetch_sub(object->pages.size(), std::memory_order_relaxed);
  large_bytes_.fetch_sub(object->bytes, std::memory_order_relaxed);
  delete object;
}

// --- fork
// ------------------------------------------------------------------------------------------------------------

void FarLog::before_fork() {
  for (Reader& reader : readers_) forget(reader);
  space_->begin_child();
  ++forks_;
  std::array<far::FarPage, 256> pages;
  std::size_t count = 0;
  for (std::uint64_t number = 1; number < next_number_; ++number) {
    for (const Block::Half& half : blocks_[number].halves) {
      if (half.record == nullptr || std::exchange(half.record->fork, forks_) == forks_) continue;
      pages[count++] = half.record->page;
      if (count == pages.size()) space_->retain(std::span(pages).first(std::exchange(count, 0)));
    }
  }
  space_->retain(std::span(pages).first(count));
  for (const LargeObject* object = large_; object != nullptr; object = object->next) space_->retain(object->pages);
}

Status FarLog::after_fork_in_child() {
  copy_mark_.set();
  begin_seeds();  // the parent goes on with its own
  for (Reader& reader : readers_) reader.port->abandon();
  readers_.clear();
  Status connected = device_->after_fork_in_child();
  space_->after_fork_in_child();
  return connected;
}

std::uint64_t FarLog::keep_house() {
  constexpr std::uint64_t kSoonNs = 10'000'000, kSharedNs = 500'000'000, kAloneNs = 1'000'000'000;
  const bool soon = device_->settle();
  const bool shared = space_->is_shared();
  if (shared && space_->reap()) return 0;
  return soon ? kSoonNs : shared ? kSharedNs : kAloneNs;
}

}  // namespace hinterland::object
