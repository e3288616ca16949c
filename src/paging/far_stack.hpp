// Calls into the pager by threads whose own stack is far memory (pthread_attr_setstack, coroutines on a heap's
// blocks). The pager's locks are the fault handler's, too: a thread that faulted on its stack with one of them in its
// hands would wait for a handler that waits for the lock (I6). So such a call runs on a stack of the runtime's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "paging/pager.hpp"

namespace hinterland {

// Calls body(argument) with the stack pointer at `top`, a multiple of 16. Unwinders find their way back.
void call_on_stack(char* top, void (*body)(void*), void* argument);

namespace far_stack {

// A stack of the runtime's for one call; several threads may hold one each. Kept for the next call, by lock-free
// exchange: callable in a signal handler and in a forked child. nullptr: the kernel has no memory for one.
constexpr std::size_t kBytes = std::size_t{256} * kKiB;  // a SIGBUS handler needs 64 KiB of it in signal mode
void* take();
void give_back(void* stack);

// In signal mode, on the stack that the program gave for its handlers: the kernel would write the next handler's
// frame over those that are there, did it see the stack pointer elsewhere.
bool must_stay();

inline bool is_ours(const Pager& pager) {
  return pager.contains(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
}

template <typename Body>
__attribute__((noinline)) auto call_elsewhere(Body& body) -> std::invoke_result_t<Body&> {
  using Outcome = std::invoke_result_t<Body&>;
  struct Call {
    Body body;
    Outcome outcome;
  };
  void* stack = must_stay() ? nullptr : take();
  if (stack == nullptr) return body();
  Call call{body, {}};
  call_on_stack(
      static_cast<char*>(stack) + kBytes,
      [](void* pointer) {
        auto* callers = static_cast<Call*>(pointer);
        Call here = *callers;  // the caller's lies on the far stack
        here.outcome = here.body();
        callers->outcome = here.outcome;
      },
      &call);
  give_back(stack);
  return call.outcome;
}

}  // namespace far_stack

// body(), on a stack that is not far. It captures by value: what it refers to on the caller's stack would be far. The
// caller has blocked signals, so that no handler leaves it by siglongjmp.
template <typename Body>
auto off_far_stack(const Pager& pager, Body body) -> std::invoke_result_t<Body&> {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (!far_stack::is_ours(pager)) [[likely]]
    return body();
  if constexpr (std::is_void_v<std::invoke_result_t<Body&>>) {
    auto answering = [body]() mutable {
      body();
      return true;
    };
    far_stack::call_elsewhere(answering);
  } else {
    return far_stack::call_elsewhere(body);
  }
}

}  // namespace hinterland
