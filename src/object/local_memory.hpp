// What far objects take of local memory, against a limit. The one place where the heap of objects asks for memory.
// Where it shares a budget with pages, the limit moves (shared_budget.hpp).
#pragma once

#include <atomic>
#include <cstdint>

namespace hinterland::object {

// Thread-safe. Relaxed throughout: amounts, ordered with nothing.
class LocalMemory {
 public:
  explicit LocalMemory(std::uint64_t limit_bytes) : limit_(limit_bytes) {}

  // False, and nothing is charged, where that would go beyond the limit.
  bool charge(std::uint64_t bytes) {
    std::uint64_t used = used_.load(std::memory_order_relaxed);
    while (used + bytes <= limit())
      if (used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed)) return true;
    return false;
  }
  void charge_beyond(std::uint64_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void give_back(std::uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  // What is used beyond it is for the caller to get back (Heap::set_limit()).
  void set_limit(std::uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }

  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  std::uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  std::uint64_t left() const { return used() < limit() ? limit() - used() : 0; }

 private:
  std::atomic<std::uint64_t> used_{0}, limit_;
};

}  // namespace hinterland::object
