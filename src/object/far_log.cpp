#include "object/far_log.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <array>
#include <utility>

#include "base/check.hpp"
#include "base/raw_call.hpp"

namespace hinterland::object {

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
  give_back({&record->page, 1});
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
    PageRecord* record = blocks_[number].record;
    if (record == nullptr || std::exchange(record->fork, forks_) == forks_) continue;
    pages[count++] = record->page;
    if (count == pages.size()) space_->retain(std::span(pages).first(std::exchange(count, 0)));
  }
  space_->retain(std::span(pages).first(count));
  for (const LargeObject* object = large_; object != nullptr; object = object->next) space_->retain(object->pages);
}

Status FarLog::after_fork_in_child() {
  copy_mark_.set();
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
