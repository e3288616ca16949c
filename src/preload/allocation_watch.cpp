#include "preload/allocation_watch.hpp"

#include "base/clock.hpp"
#include "base/units.hpp"
#include "preload/far_heap.hpp"
#include "preload/state.hpp"
#include "preload/uninterrupted.hpp"

namespace hinterland::allocation_watch {

std::atomic<const Observer*> g_observer{nullptr};

namespace {

void stop_unless(bool goes_on, const Observer& observer) {
  const Observer* expected = &observer;
  if (!goes_on) g_observer.compare_exchange_strong(expected, nullptr);
}

}  // namespace

void* watched(const Observer& observer, std::size_t bytes, void* (*make)(void*), void* argument) {
  std::uint64_t since_ns = observer.sampled(bytes);
  void* block = make(argument);
  if (since_ns == 0 || block == nullptr) return block;
  Uninterrupted inside;  // finding the callers may allocate
  std::size_t usable = far_heap::usable_size(block);
  stop_unless(observer.made(reinterpret_cast<std::uintptr_t>(block), bytes, usable, since_ns), observer);
  return block;
}

std::uint64_t before_mapping() { return observer() != nullptr && serves_program() ? now_ns() : 0; }

void mapped(std::uintptr_t address, std::size_t bytes, std::uint64_t since_ns) {
  const Observer* watcher = observer();
  if (since_ns == 0 || watcher == nullptr || !pager().contains(address)) return;
  Uninterrupted inside;
  stop_unless(watcher->mapped(address, page_ceil(bytes), since_ns), *watcher);
}

void unmapped(std::uintptr_t address, std::size_t bytes, std::uint64_t since_ns) {
  const Observer* watcher = observer();
  if (since_ns == 0 || watcher == nullptr || !pager().overlaps(address, page_ceil(bytes))) return;
  watcher->unmapped(address, page_ceil(bytes), since_ns);
}

}  // namespace hinterland::allocation_watch
