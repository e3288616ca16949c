// Work of the runtime runs on stacks of its own, whatever its caller stands on
// (docs/adr/0037-stacks-of-the-runtimes-own.md):
// - the caller's may be an alternate signal stack or a coroutine's of a few KiB, with somebody's variables below it
// - it may be far memory: a thread that faulted there with a lock of the pager's in its hands would wait for a
// handler
//   that waits for the lock (I6)
// Of the caller's stack, what leads here and a frame of about a hundred bytes are used.
//
// Who calls has blocked signals, so that no handler leaves by siglongjmp with a stack taken, and none of the
// program's is written to an alternate stack that the caller stands on: the kernel looks at the stack pointer to
// know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/units.hpp"

namespace hinterland {

// Calls body(argument) with the stack pointer at `top`, a multiple of 16. Unwinders find their way back.
void call_on_stack(char* top, void (*body)(void*), void* argument);

namespace own_stack {

// Of one, with its guard page. In signal mode a SIGBUS handler needs 64 KiB of it. Only what is touched is memory.
constexpr std::size_t kBytes = std::size_t{256} * kKiB;
constexpr unsigned kCount = 64;  // threads that are inside at once; one more maps a stack for its call, and unmaps it

// Once, before there are other threads. Without it all calls stay on their caller's stacks.
void reserve();
// Faults are served by signal from now on. Where a caller stands on an alternate stack that is asked for, and the
// next frame of SIGBUS goes to the stack that we are on: the kernel would write it over what lies on the alternate
// one.
void expect_fault_signals();

// Whether the caller is on one.
bool is_on();

// body(argument), on a stack of ours; nested calls stay where they are. Async-signal-safe, and callable in a forked
// child. Where the kernel has no memory for a stack, on the caller's.
void call(void (*body)(void*), void* argument);

}  // namespace own_stack

// body(), on a stack of the runtime's own. It captures by value: what it refers to on the caller's stack may be far.
template <typename Body>
auto on_own_stack(const Body& body) -> std::invoke_result_t<Body&> {
  static_assert(std::is_trivially_copyable_v<Body>);
  using Outcome = std::invoke_result_t<Body&>;
  if constexpr (std::is_void_v<Outcome>) {
    own_stack::call([](void* callers) { Body (*static_cast<const Body*>(callers))(); }, const_cast<Body*>(&body));
  } else {
    struct Call {
      const Body* body;
      Outcome outcome;
    } asked{&body, {}};
    own_stack::call(
        [](void* pointer) {
          auto* callers = static_cast<Call*>(pointer);  // its stack is maybe far
          callers->outcome = Body(*callers->body)();
        },
        &asked);
    return asked.outcome;
  }
}

}  // namespace hinterland
