#include "far/holders.hpp"

#include <sched.h>

#include <bit>
#include <cerrno>

#include "base/check.hpp"
#include "base/mutex.hpp"

namespace hinterland::far {

Status Holders::create(std::uint64_t pages) {
  bits_at_ = kPageSize + page_ceil(kPlaces * sizeof(Place));
  stride_ = page_ceil((pages + 7) / 8);
  auto memory = SharedMemory::reserve(bits_at_ + kPlaces * stride_, "the holders of far pages");
  if (!memory) return std::unexpected(memory.error());
  memory_ = std::move(*memory);
  return {};
}

std::uint32_t Holders::begin() {
  for (std::uint32_t index = 0; index < kPlaces; ++index) {
    std::uint32_t free = kFree;
    // acquire: pairs with the release in end(), so that the bits are seen cleared
    if (!place(index).state.compare_exchange_strong(free, kStarting, std::memory_order_acquire)) continue;
    place(index).claimed = false;
    place(index).cursor = 0;
    place(index).leaving.store(0, std::memory_order_relaxed);
    place(index).owner.store(0, std::memory_order_relaxed);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&place(index).alive, &attributes);
    pthread_mutexattr_destroy(&attributes);
    std::uint32_t ever = header().places_ever.load(std::memory_order_relaxed);
    while (ever <= index && !header().places_ever.compare_exchange_weak(ever, index + 1)) {
    }
    return index;
  }
  return kNone;
}

// Until the state is set again nobody else touches the mutex, and so nobody makes it anew under us.
bool Holders::look(std::uint32_t index) {
  std::uint32_t alive = kAlive;
  return place(index).state.compare_exchange_strong(alive, kLooking, std::memory_order_acquire,
                                                    std::memory_order_relaxed);
}

void Holders::end(std::uint32_t index) {
  if (index == kNone) return;
  memory_.punch(bits_at_ + index * stride_, stride_);
  if (place(index).claimed) {
    while (!look(index)) sched_yield();
    pthread_mutex_unlock(&place(index).alive);
  }
  place(index).state.store(kFree, std::memory_order_release);
}

void Holders::enter(std::uint32_t index) {
  if (index == kNone) return;
  pthread_mutex_lock(&place(index).alive);
  place(index).state.store(kAlive, std::memory_order_release);  // pairs with the acquire in look()
  futex_wake(&place(index).state, 1, true);
}

void Holders::wait_until_entered(std::uint32_t index) {
  if (index == kNone) return;
  while (place(index).state.load(std::memory_order_acquire) == kStarting)
    futex_wait(&place(index).state, kStarting, 0, true);
}

void Holders::set_owner(std::uint32_t index, std::uint32_t owner) {
  if (index != kNone) place(index).owner.store(owner, std::memory_order_relaxed);
}
std::uint32_t Holders::owner(std::uint32_t index) const { return place(index).owner.load(std::memory_order_relaxed); }

std::uint32_t Holders::find_dead(std::uint32_t own) {
  std::uint32_t ever = header().places_ever.load(std::memory_order_relaxed);
  for (std::uint32_t index = 0; index < ever; ++index) {
    if (index == own || !look(index)) continue;
    int result = pthread_mutex_trylock(&place(index).alive);
    bool dead = result == EOWNERDEAD;  // also when another died while it emptied the place: we go on
    if (dead) {
      pthread_mutex_consistent(&place(index).alive);
      place(index).claimed = true;
    }
    place(index).state.store(kAlive, std::memory_order_release);
    if (dead) return index;
  }
  return kNone;
}

bool Holders::take(std::uint32_t index, std::uint64_t end, FarPage* page) {
  for (std::uint64_t& cursor = place(index).cursor; cursor * 64 < end; ++cursor) {
    std::atomic<std::uint64_t>& bits = word(index, cursor);
    const std::uint64_t left = bits.load(std::memory_order_relaxed);
    if (left == 0) continue;
    *page = {cursor * 64 + static_cast<unsigned>(std::countr_zero(left))};
    bits.store(left & (left - 1), std::memory_order_relaxed);
    return true;
  }
  return false;
}

std::span<const FarPage> Holders::leaving(std::uint32_t index) const {
  // relaxed here and below: of one process at a time, which the mutex orders
  return std::span(place(index).leaving_pages).first(place(index).leaving.load(std::memory_order_relaxed));
}

void Holders::add_leaving(std::uint32_t index, FarPage page) {
  const std::uint32_t count = place(index).leaving.load(std::memory_order_relaxed);
  HL_CHECK(count < kLeavingMax);
  place(index).leaving_pages[count] = page;
  place(index).leaving.store(count + 1, std::memory_order_release);  // last: the process may end at any step
}

bool Holders::take_leaving(std::uint32_t index, FarPage* page) {
  const std::uint32_t count = place(index).leaving.load(std::memory_order_relaxed);
  if (count == 0) return false;
  *page = place(index).leaving_pages[count - 1];
  place(index).leaving.store(count - 1, std::memory_order_relaxed);
  return true;
}

}  // namespace hinterland::far
