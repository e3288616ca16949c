// The program's threads and the CPU each last ran on, which the kernel keeps for us in every thread's rseq area.
//
// Written by threads as they start and end, read by the fault handler while the thread it asks about is blocked in a
// fault (so its area is there). Lock-free; open addressing by thread id.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace hinterland {

class ProgramThreads {
 public:
  static constexpr std::uint32_t kSlots = 4096;

  void add(std::uint32_t thread_id, const volatile std::uint32_t* cpu) {
    for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
      Slot& slot = slots_[(thread_id + probe) % kSlots];
      std::uint32_t free = 0;
      if (!slot.thread_id.compare_exchange_strong(free, kTaken, std::memory_order_acquire)) continue;
      slot.cpu = cpu;
      slot.thread_id.store(thread_id, std::memory_order_release);  // pairs with cpu_of(): `cpu` is there
      count_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  void remove(std::uint32_t thread_id) {
    for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
      Slot& slot = slots_[(thread_id + probe) % kSlots];
      if (slot.thread_id.load(std::memory_order_relaxed) != thread_id) continue;
      slot.thread_id.store(0, std::memory_order_release);  // pairs with add()
      count_.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
  }
  // -1 when the thread is not known.
  int cpu_of(std::uint32_t thread_id) const {
    if (thread_id == 0) return -1;
    for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
      const Slot& slot = slots_[(thread_id + probe) % kSlots];
      if (slot.thread_id.load(std::memory_order_acquire) == thread_id)  // pairs with add()
        return slot.cpu == nullptr ? -1 : static_cast<int>(*slot.cpu);
    }
    return -1;
  }
  void clear() {
    for (Slot& slot : slots_) slot.thread_id.store(0, std::memory_order_relaxed);
    count_.store(0, std::memory_order_relaxed);
  }
  // Are there several, as far as is known? Only to steer by.
  bool several() const { return count_.load(std::memory_order_relaxed) > 1; }

 private:
  static constexpr std::uint32_t kProbes = 16;
  static constexpr std::uint32_t kTaken = 0xffffffff;
  struct Slot {
    std::atomic<std::uint32_t> thread_id{0};
    const volatile std::uint32_t* cpu = nullptr;
  };
  std::array<Slot, kSlots> slots_;
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace hinterland
