// A fiber: the control block at the top of its stack.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

#include "fiber/context.hpp"
#include "fiber/fault_parking.hpp"
#include "fiber/stacks.hpp"
#include "hinterland/fiber.hpp"

namespace hinterland::fiber {

class Scheduler;

// What the worker does for a fiber once it is off the fiber's stack.
enum class Leaving : std::uint8_t { yields, parks, hints, arrival, ends };

// What a hint said, for the worker that asks the runtime (hinting.hpp).
struct HintCall {
  const void* address = nullptr;
  std::size_t size = 0;
  std::int32_t read_ahead = 0;
  std::uint32_t flags = 0;
};

// A fiber that parks and whoever wakes it agree by these. Each park has exactly one wake.
enum class Parking : std::uint32_t {
  awake,   // it runs, is ready, or is about to park
  parked,  // its worker has left its stack: who wakes it makes it ready
  woken,   // the wake came first: its worker makes it ready
};

}  // namespace hinterland::fiber

struct hl::fibers::detail::control {
  hinterland::fiber::Context context;
  control* next = nullptr;  // in the one queue that it is in
  hinterland::fiber::Scheduler* scheduler = nullptr;
  std::atomic<hinterland::fiber::Parking> parking{hinterland::fiber::Parking::awake};
  hinterland::fiber::Leaving leaving = hinterland::fiber::Leaving::yields;
  // The end, and the owner's handle. At zero the stack goes back.
  std::atomic<std::uint32_t> references{2};
  std::atomic<bool> detached{false};
  spin_lock guard;  // of the two that follow
  bool ended = false;
  wait_list joiners;
  std::exception_ptr error;  // what left the body; for join()
  void (*call)(void*) = nullptr;
  void* callable = nullptr;
  hinterland::fiber::Stack stack;
  hinterland::fiber::HintCall hint;
  const void* awaited = nullptr;     // far object (object_parking.hpp)
  std::uint32_t scopes[2] = {0, 0};  // of far objects, open while it is away, by parity
  hinterland::fiber::FaultParking faults;
  std::uint64_t id = 0;
  char name[32] = {};
};

namespace hinterland::fiber {
using Fiber = hl::fibers::detail::control;

// First in, first out, through Fiber::next. Not thread-safe.
struct FiberList {
  Fiber* first = nullptr;
  Fiber* last = nullptr;
  void push(Fiber& fiber) {
    fiber.next = nullptr;
    (last != nullptr ? last->next : first) = &fiber;
    last = &fiber;
  }
  Fiber* pop() {
    Fiber* fiber = first;
    if (fiber != nullptr) first = fiber->next;
    if (first == nullptr) last = nullptr;
    return fiber;
  }
};

}  // namespace hinterland::fiber
