// Who is told of the program's allocations while it is traced: nobody, as a rule, and then an allocation costs a look
// at one pointer more. What is told is memory of the window alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hinterland::allocation_watch {

// Functions of trace/allocation_log.hpp, which says what they are told and when.
struct Observer {
  std::uint64_t (*sampled)(std::size_t bytes);
  bool (*made)(std::uintptr_t address, std::size_t asked, std::size_t bytes, std::uint64_t since_ns);
  std::uint64_t (*taken_out)(std::uintptr_t address);
  void (*ended)(std::uintptr_t address, std::uint64_t made_ns);
  bool (*mapped)(std::uintptr_t address, std::size_t bytes, std::uint64_t since_ns);
  void (*unmapped)(std::uintptr_t address, std::size_t bytes, std::uint64_t since_ns);
};

extern std::atomic<const Observer*> g_observer;

// Any thread. `observer` lives as long as the process.
inline void begin(const Observer& observer) { g_observer.store(&observer, std::memory_order_release); }
inline const Observer* observer() { return g_observer.load(std::memory_order_acquire); }

// A block of the far heap, which make() makes, or nullptr.
void* watched(const Observer& observer, std::size_t bytes, void* (*make)(void* argument), void* argument);
template <typename Make>
inline void* allocate(std::size_t bytes, Make make) {
  const Observer* watcher = observer();
  if (watcher == nullptr) [[likely]]
    return make();
  return watched(*watcher, bytes, [](void* argument) { return (*static_cast<Make*>(argument))(); }, &make);
}

// Before a far block is freed.
inline void release(const void* block) {
  const Observer* watcher = observer();
  if (watcher == nullptr) [[likely]]
    return;
  auto address = reinterpret_cast<std::uintptr_t>(block);
  if (std::uint64_t made_ns = watcher->taken_out(address); made_ns != 0) watcher->ended(address, made_ns);
}

// As allocate(), of a block that replaces `old`.
template <typename Resize>
inline void* resize(const void* old, std::size_t bytes, Resize make) {
  const Observer* watcher = observer();
  if (watcher == nullptr) [[likely]]
    return make();
  auto address = reinterpret_cast<std::uintptr_t>(old);
  std::uint64_t made_ns = watcher->taken_out(address);
  void* block = allocate(bytes, make);
  if (made_ns != 0 && block != nullptr) watcher->ended(address, made_ns);
  return block;
}

// Before mmap, munmap or mremap: the time for what follows; 0 when nobody wants to know.
std::uint64_t before_mapping();
// After it went well.
void mapped(std::uintptr_t address, std::size_t bytes, std::uint64_t since_ns);
void unmapped(std::uintptr_t address, std::size_t bytes, std::uint64_t since_ns);

}  // namespace hinterland::allocation_watch
