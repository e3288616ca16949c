// An atomic on which a scheduler steps: before each operation that orders anything another mover may go on, and what
// the operation saw becomes part of what its mover knows. One thread runs at a time, so memory orders mean no more
// here than that a relaxed load or store is no place to step: what it precedes (a swap) or who excludes others (a
// lock) is. What else they mean, a listener may keep (happens_before.hpp), and let others see relaxed stores late.
#pragma once

#include <atomic>
#include <cstdint>

namespace hinterland::testing {

enum class AtomicOperation : std::uint8_t { glance, load, store, exchange, compare_exchange };

// What the atomics call, in scheduler.cpp. A page's word, or an object's, is told from what is smaller by its size.
// `operand`: what is to be written; of a load, what is there now.
void step_before(AtomicOperation operation, const void* what, std::uint64_t operand, bool word);
void step_after(AtomicOperation operation, const void* what, std::uint64_t before, std::uint64_t after, bool word,
                std::memory_order order);
// Whether a relaxed store is to be seen by others later: then `apply` is called when they do.
bool step_delays(void* what, std::uint64_t value, void (*apply)(void* what, std::uint64_t value));
// What the mover itself sees there.
std::uint64_t step_own_view(const void* what, std::uint64_t value);

template <typename T>
class SteppedAtomic {
 public:
  constexpr SteppedAtomic() = default;
  constexpr SteppedAtomic(T value) : value_(value) {}

  T load(std::memory_order order = std::memory_order_seq_cst) const {
    step_before(order == std::memory_order_relaxed ? AtomicOperation::glance : AtomicOperation::load, this,
                number(value_), kIsWord);
    const std::uint64_t seen = step_own_view(this, number(value_));
    step_after(AtomicOperation::load, this, seen, seen, kIsWord, order);
    return static_cast<T>(seen);
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    if (order != std::memory_order_relaxed)
      step_before(AtomicOperation::store, this, number(value), kIsWord);
    else if (step_delays(this, number(value), [](void* what, std::uint64_t delayed) {
               static_cast<SteppedAtomic*>(what)->value_ = static_cast<T>(delayed);
             }))
      return;
    change(AtomicOperation::store, value, order);
  }
  T operator=(T value) {
    store(value);
    return value;
  }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst) {
    step_before(AtomicOperation::exchange, this, number(value), kIsWord);
    return change(AtomicOperation::exchange, value, order);
  }
  T fetch_add(T value, std::memory_order order = std::memory_order_seq_cst) {
    step_before(AtomicOperation::exchange, this, number(value), kIsWord);
    return change(AtomicOperation::exchange, static_cast<T>(value_ + value), order);
  }
  T fetch_sub(T value, std::memory_order order = std::memory_order_seq_cst) {
    step_before(AtomicOperation::exchange, this, number(value), kIsWord);
    return change(AtomicOperation::exchange, static_cast<T>(value_ - value), order);
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order order = std::memory_order_seq_cst) {
    return compare_exchange_strong(expected, value, order, when_it_fails(order));
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order order, std::memory_order failure) {
    step_before(AtomicOperation::compare_exchange, this, number(value), kIsWord);
    if (value_ != expected) {
      step_after(AtomicOperation::compare_exchange, this, number(value_), number(value_), kIsWord, failure);
      expected = value_;
      return false;
    }
    change(AtomicOperation::compare_exchange, value, order);
    return true;
  }
  bool compare_exchange_weak(T& expected, T value, std::memory_order order = std::memory_order_seq_cst) {
    return compare_exchange_strong(expected, value, order);
  }
  bool compare_exchange_weak(T& expected, T value, std::memory_order order, std::memory_order failure) {
    return compare_exchange_strong(expected, value, order, failure);
  }

  // Without a step: for what looks on from outside.
  T peek() const { return value_; }

 private:
  static constexpr bool kIsWord = sizeof(T) == 8;
  static std::uint64_t number(T value) { return static_cast<std::uint64_t>(value); }
  static constexpr std::memory_order when_it_fails(std::memory_order order) {
    return order == std::memory_order_acq_rel   ? std::memory_order_acquire
           : order == std::memory_order_release ? std::memory_order_relaxed
                                                : order;
  }
  T change(AtomicOperation operation, T value, std::memory_order order) {
    T before = value_;
    value_ = value;
    step_after(operation, this, number(before), number(value), kIsWord, order);
    return before;
  }

  T value_{};
};

}  // namespace hinterland::testing
