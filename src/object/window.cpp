// Blocks of the object window: made, reached by guards, and ended. Its pages: window_pages.cpp.
#include "object/window.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/check.hpp"
#include "base/inside.hpp"
#include "base/log.hpp"
#include "base/raw_call.hpp"
#include "object/block_profile.hpp"
#include "paging/place/runtime_thread.hpp"

namespace hinterland::object {
namespace {

constexpr std::size_t kSizeUnit = 16;  // of what the tables say, and the alignment of what malloc gives
// Guards ask of the pointer to an object whether it is in the window, and programs have pointers that stand before
// the array that they mean (numbered from 1).
constexpr std::size_t kEmptyBytes = 64 * kKiB;
constexpr std::uint64_t kOpenedTogether = 64 * kMiB;

std::uintptr_t begin_of(unsigned shift) { return std::uintptr_t{shift} << Window::kPartShift; }

std::intptr_t map_table(std::uintptr_t at, std::size_t bytes) {
  return raw::call(SYS_mmap, static_cast<long>(at), static_cast<long>(bytes), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at != 0 ? MAP_FIXED_NOREPLACE : 0), -1, 0);
}
std::size_t slots_of(unsigned shift) { return Window::kPartBytes >> shift; }

std::unexpected<Error> no_addresses(std::intptr_t problem) {
  return std::unexpected(Error::make(static_cast<int>(-problem), "no addresses for the object window")
                             .remedy("raise the limit on them: ulimit -v"));
}

}  // namespace

Result<std::unique_ptr<Window>> Window::create(Heap& heap) {
  std::unique_ptr<Window> window(new Window(heap));
  if (Status able = heap.grace().begin_guards(); !able) return std::unexpected(able.error());
  auto range = FaultedRange::create(kBase, kBytes);
  if (!range) return std::unexpected(range.error());
  window->range_ = std::move(*range);
  if (Status mapped = window->map_tables(); !mapped) return std::unexpected(mapped.error());
  if (Status begun = window->begin(); !begun) return std::unexpected(begun.error());
  return window;
}

Status Window::map_tables() {
  for (unsigned shift = kShiftMin; shift <= kShiftMax; ++shift) {
    Part& part = parts_[shift - kShiftMin];
    part.next = static_cast<std::uint32_t>(kEmptyBytes >> shift);
    const auto at = reinterpret_cast<std::uintptr_t>(word_of(begin_of(shift)));
    const std::intptr_t words = map_table(at, slots_of(shift) * sizeof(Word));
    if (raw::failed(words)) return no_addresses(words);
    if (static_cast<std::uintptr_t>(words) != at) return no_addresses(-EEXIST);
    const std::intptr_t sizes = map_table(0, slots_of(shift)), home = map_table(0, kPartBytes / kPageSize);
    part.sizes = raw::failed(sizes) ? nullptr : reinterpret_cast<std::uint8_t*>(sizes);
    part.home = raw::failed(home) ? nullptr : reinterpret_cast<std::atomic<std::uint8_t>*>(home);
    if (raw::failed(sizes)) return no_addresses(sizes);
    if (raw::failed(home)) return no_addresses(home);
  }
  return {};
}

Status Window::begin() {
  if (Status holder = start_runtime_thread("hl-window-fd", this, holder_main); !holder) return holder;
  range_->wait_until_kept();
  ended_.store(0, std::memory_order_relaxed);
  Status keeper = start_runtime_thread("hl-window", this, keeper_main);
  if (!keeper) ended_.store(1, std::memory_order_relaxed);
  return keeper;
}

Window::~Window() {
  if (range_ != nullptr) range_->stop();
  while (ended_.load(std::memory_order_acquire) == 0) futex_wait(&ended_, 0);  // pairs with keeper_main()
  range_.reset();
  for (unsigned shift = kShiftMin; shift <= kShiftMax; ++shift) {
    Part& part = parts_[shift - kShiftMin];
    if (part.home == nullptr) continue;
    raw::call(SYS_munmap, raw::word_of(word_of(begin_of(shift))), static_cast<long>(slots_of(shift) * sizeof(Word)));
    raw::call(SYS_munmap, raw::word_of(part.sizes), static_cast<long>(slots_of(shift)));
    raw::call(SYS_munmap, raw::word_of(part.home), static_cast<long>(kPartBytes / kPageSize));
  }
}

std::atomic<std::uint8_t>& Window::home_of(std::uintptr_t address) {
  const std::uintptr_t within = address & ((std::uintptr_t{1} << kPartShift) - 1);
  return part_of(address).home[within / kPageSize];
}

std::uint8_t& Window::size_at(std::uintptr_t address) const {
  const std::uintptr_t within = address & ((std::uintptr_t{1} << kPartShift) - 1);
  return part_of(address).sizes[within >> (address >> kPartShift)];
}

// --- made and ended
// --------------------------------------------------------------------------------------------------

bool Window::take_slot(Part& part, unsigned shift, std::uint32_t* slot) {
  LockGuard guard(part.mutex);
  if (!part.free.empty()) {
    *slot = part.free.back();
    part.free.pop_back();
    return true;
  }
  const std::uint64_t end = (std::uint64_t{part.next} + 1) << shift;
  if (end > part.opened_bytes) {
    if (end > kPartBytes) return false;
    try {
      part.free.reserve(2 * std::size_t{part.next} + (kOpenedTogether >> shift));  // release() does not fail
    } catch (const std::bad_alloc&) {
      return false;
    }
    if (range_->open(begin_of(shift) + part.opened_bytes, kOpenedTogether) != 0) return false;
    part.opened_bytes += kOpenedTogether;
  }
  *slot = part.next++;
  return true;
}

void* Window::allocate(std::size_t bytes, bool zeroed) {
  if (bytes > kBlockMax) return nullptr;
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + kSizeUnit - 1) & ~(kSizeUnit - 1);
  const unsigned shift = std::max(kShiftMin, static_cast<unsigned>(std::bit_width(rounded - 1)));
  Part& part = parts_[shift - kShiftMin];
  wait_for_room();
  Grace::Call call(heap_.grace());
  std::uint32_t slot;
  if (!take_slot(part, shift, &slot)) return nullptr;
  const std::uintptr_t address = begin_of(shift) + (std::uintptr_t{slot} << shift);
  if (fill_slot(address, rounded, zeroed)) {
    if (block_profile().counts()) block_profile().made(bytes);
    return reinterpret_cast<void*>(address);
  }
  LockGuard guard(part.mutex);
  part.free.push_back(slot);
  return nullptr;
}

bool Window::fill_slot(std::uintptr_t address, std::size_t bytes, bool zeroed) {
  LockGuard guard(lock_of(address));
  void* there = reinterpret_cast<void*>(address);
  if (home_of(address).load(std::memory_order_relaxed) == 0) {
    there = heap_.begin_object(bytes, kSizeUnit, nullptr, false);
    if (there == nullptr) return false;
  }
  if (zeroed) std::memset(there, 0, bytes);
  size_at(address) = static_cast<std::uint8_t>(bytes / kSizeUnit);
  if (there != reinterpret_cast<void*>(address)) heap_.finish_object(there, word_of(address));
  return true;
}

bool Window::release(void* block) {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const unsigned shift = static_cast<unsigned>(address >> kPartShift);
  Grace::Call call(heap_.grace());
  {
    LockGuard guard(lock_of(address));
    if (size_of(block) == 0) return false;
    size_at(address) = 0;
    if (home_of(address).load(std::memory_order_relaxed) == 0) heap_.release(word_of(address));
  }
  Part& part = parts_[shift - kShiftMin];
  LockGuard guard(part.mutex);
  part.free.push_back(static_cast<std::uint32_t>((address - begin_of(shift)) >> shift));
  return true;
}

std::size_t Window::size_of(const void* block) const {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::uintptr_t within = address & ((std::uintptr_t{1} << kPartShift) - 1);
  if (!contains(block) || within >= kPartBytes) return 0;
  if ((address & ((std::uintptr_t{1} << (address >> kPartShift)) - 1)) != 0) return 0;
  return size_at(address) * kSizeUnit;
}

// --- reached
// ---------------------------------------------------------------------------------------------------------

// As who opens a scope of far objects does. Whoever comes here is in no scope, or waits no longer than another one.
void Window::wait_for_room() {
  static constinit Grace::Slot nobody;
  if (heap_.grace().pressed()) heap_.relieve(&nobody);
}

int Window::reach(std::uintptr_t address, bool write) {
  const std::uintptr_t within = address & ((std::uintptr_t{1} << kPartShift) - 1);
  if (within >= kPartBytes) return 0;
  wait_for_room();
  Grace::Call call(heap_.grace());
  const std::uintptr_t slot = address & ~((std::uintptr_t{1} << (address >> kPartShift)) - 1);
  // The page's lock excludes that the word moves meanwhile (Heap::move()), and frees. The address that reach()
  // returns may be wrong at once; the guard looks at the word again.
  LockGuard guard(lock_of(address));
  if (size_at(slot) == 0 || home_of(address).load(std::memory_order_relaxed) != 0) return 0;
  reached_.fetch_add(1, std::memory_order_relaxed);
  if (block_profile().counts() && is_kind(word_of(address)->load(std::memory_order_relaxed), kFar))
    block_profile().brought(size_at(slot) * kSizeUnit, address);
  int error = 0;
  heap_.reach(word_of(address), write ? std::uint32_t{hl::far::detail::kReachWrite} : 0, &error);
  return error;
}

}  // namespace hinterland::object
