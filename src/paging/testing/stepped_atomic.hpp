// An atomic on which a scheduler steps: before each operation that orders anything another mover may go on, and what
// the operation saw becomes part of what its mover knows. One thread runs at a time, so memory orders mean no more
// here than that a relaxed load or store is no place to step: what it precedes (a swap) or who excludes others (a
// lock) is.
#pragma once

#include <atomic>
#include <cstdint>

namespace hinterland::testing {

enum class AtomicOperation : std::uint8_t { glance, load, store, exchange, compare_exchange };

// What the atomics call, in scheduler.cpp. A page's word is told from a frame's state by its size.
// `operand`: what is to be written; of a load, what is there now.
void step_before(AtomicOperation operation, const void* what, std::uint64_t operand, bool word);
void step_after(AtomicOperation operation, const void* what, std::uint64_t before, std::uint64_t after, bool word);

template <typename T>
class SteppedAtomic {
 public:
  constexpr SteppedAtomic() = default;
  constexpr SteppedAtomic(T value) : value_(value) {}

  T load(std::memory_order order = std::memory_order_seq_cst) const {
    step_before(order == std::memory_order_relaxed ? AtomicOperation::glance : AtomicOperation::load, this,
                number(value_), kIsWord);
    step_after(AtomicOperation::load, this, number(value_), number(value_), kIsWord);
    return value_;
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    if (order != std::memory_order_relaxed) step_before(AtomicOperation::store, this, number(value), kIsWord);
    change(AtomicOperation::store, value);
  }
  T operator=(T value) {
    store(value);
    return value;
  }
  T exchange(T value, std::memory_order = std::memory_order_seq_cst) {
    step_before(AtomicOperation::exchange, this, number(value), kIsWord);
    return change(AtomicOperation::exchange, value);
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order = std::memory_order_seq_cst,
                               std::memory_order = std::memory_order_seq_cst) {
    step_before(AtomicOperation::compare_exchange, this, number(value), kIsWord);
    if (value_ != expected) {
      step_after(AtomicOperation::compare_exchange, this, number(value_), number(value_), kIsWord);
      expected = value_;
      return false;
    }
    change(AtomicOperation::compare_exchange, value);
    return true;
  }
  bool compare_exchange_weak(T& expected, T value, std::memory_order = std::memory_order_seq_cst,
                             std::memory_order = std::memory_order_seq_cst) {
    return compare_exchange_strong(expected, value);
  }

  // Without a step: for what looks on from outside.
  T peek() const { return value_; }

 private:
  static constexpr bool kIsWord = sizeof(T) == 8;
  static std::uint64_t number(T value) { return static_cast<std::uint64_t>(value); }
  T change(AtomicOperation operation, T value) {
    T before = value_;
    value_ = value;
    step_after(operation, this, number(before), number(value), kIsWord);
    return before;
  }

  T value_{};
};

}  // namespace hinterland::testing
