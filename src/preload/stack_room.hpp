// Where the heap may work: on the caller's stack where that has room, which it has on nearly all of them, else on one
// of the runtime's own. jemalloc uses up to four kilobytes, glibc's allocator a few hundred bytes, and coroutines and
// alternate signal stacks are made for those. A switch for each call would make malloc slower by a third.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/own_stack.hpp"
#include "base/roomy_stack.hpp"

namespace hinterland::stack_room {

// For a thread of the program, when it starts.
void begin();
// The thread has an alternate stack: where that is part of its own one, nothing of that is known to have room.
void alternate(const stack_t& stack);

// Signals are blocked where the caller stands on its alternate stack: another one's frame would be written over it.
void call_elsewhere(void (*body)(void*), void* argument);

// body(), which may refer to what its caller has; its outcome is a word or nothing. errno is a thread's, not a
// stack's.
template <typename Body>
auto with_room(Body&& body) {
  using Outcome = std::invoke_result_t<Body&>;
  if (has_room()) [[likely]]
    return body();
  if constexpr (std::is_void_v<Outcome>) {
    call_elsewhere([](void* callers) { (*static_cast<std::remove_reference_t<Body>*>(callers))(); }, &body);
  } else {
    struct Call {
      std::remove_reference_t<Body>& body;
      Outcome outcome;
    } asked{body, {}};
    call_elsewhere(
        [](void* pointer) {
          auto* call = static_cast<Call*>(pointer);
          call->outcome = call->body();
        },
        &asked);
    return asked.outcome;
  }
}

}  // namespace hinterland::stack_room
