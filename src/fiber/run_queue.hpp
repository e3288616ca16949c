// The ready fibers of one worker: a ring in which the owner adds at the tail, and takes at the head as thieves do.
// First in, first out, so that a fiber that yields lets all others run. (The ring of Go's scheduler.)
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "fiber/control.hpp"

namespace hinterland::fiber {

class RunQueue {
 public:
  static constexpr std::uint32_t kCapacity = 256;

  // The owner only. False when it is full.
  bool push(Fiber* fiber) {
    std::uint32_t tail = tail_.load(std::memory_order_relaxed);  // only the owner changes it
    std::uint32_t head = head_.load(std::memory_order_acquire);  // pairs with take(): the slot has been read
    if (tail - head >= kCapacity) return false;
    ring_[tail % kCapacity].store(fiber, std::memory_order_relaxed);  // published by the tail
    tail_.store(tail + 1, std::memory_order_release);                 // pairs with take()
    return true;
  }

  // Anybody. nullptr when it is empty.
  Fiber* take() {
    std::uint32_t head = head_.load(std::memory_order_acquire);
    for (;;) {
      std::uint32_t tail = tail_.load(std::memory_order_acquire);  // pairs with push(): what is in the slots
      if (static_cast<std::int32_t>(tail - head) <= 0) return nullptr;
      Fiber* fiber = ring_[head % kCapacity].load(std::memory_order_relaxed);
      // Where others were faster, the slot may have been filled anew, and the exchange fails. Release: the slot has
      // been read before push() may see it free.
      if (head_.compare_exchange_weak(head, head + 1, std::memory_order_acq_rel, std::memory_order_acquire))
        return fiber;
    }
  }

  bool empty() const { return size() == 0; }
  std::uint32_t size() const {
    auto size =
        static_cast<std::int32_t>(tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_acquire));
    return size > 0 ? static_cast<std::uint32_t>(size) : 0;
  }

 private:
  alignas(64) std::atomic<std::uint32_t> head_{0};
  alignas(64) std::atomic<std::uint32_t> tail_{0};
  alignas(64) std::array<std::atomic<Fiber*>, kCapacity> ring_{};
};

}  // namespace hinterland::fiber
