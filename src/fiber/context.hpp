// Leaving one stack and entering another: Boost.Context's switch in assembly, with what a thread has beside its
// registers, and what the sanitizers want to be told.
//
// A thread also has the exceptions that it is handling: `throw;` in a catch block that waited, perhaps on another
// thread since, must find its own. libstdc++ keeps them in 16 bytes that each switch exchanges.
#pragma once

#include <cxxabi.h>
#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <cstdint>
#include <utility>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#elif defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace hinterland::fiber {

// The Itanium C++ ABI (2.2.2) fixes the first two members of __cxa_eh_globals.
struct Exceptions {
  void* caught = nullptr;
  unsigned uncaught = 0;
};

// One side of a switch: a fiber, or the thread that runs it.
struct Context {
  boost::context::detail::fcontext_t registers = nullptr;
  Exceptions exceptions;
#if defined(__SANITIZE_THREAD__)
  void* sanitizer = nullptr;
#elif defined(__SANITIZE_ADDRESS__)
  void* sanitizer = nullptr;
  const void* stack = nullptr;
  std::size_t stack_bytes = 0;
#endif
};

// `argument` comes to the entry as transfer_t::data; the entry calls arrived() first.
inline void prepare(Context& context, void* stack_low, void* stack_top,
                    void (*entry)(boost::context::detail::transfer_t)) {
  auto bytes = static_cast<std::size_t>(static_cast<std::byte*>(stack_top) - static_cast<std::byte*>(stack_low));
  context.registers = boost::context::detail::make_fcontext(stack_top, bytes, entry);
#if defined(__SANITIZE_THREAD__)
  context.sanitizer = __tsan_create_fiber(0);
#elif defined(__SANITIZE_ADDRESS__)
  context.stack = stack_low;
  context.stack_bytes = bytes;
#endif
}

// For good: nobody switches to it again.
inline void dispose(Context& context) {
#if defined(__SANITIZE_THREAD__)
  if (context.sanitizer != nullptr) __tsan_destroy_fiber(context.sanitizer);
  context.sanitizer = nullptr;
#elif defined(__SANITIZE_ADDRESS__)
  // Frames that it never returned from: what is mapped there next is not theirs.
  __asan_unpoison_memory_region(context.stack, context.stack_bytes);
#endif
  context.registers = nullptr;
}

// Where a switch ends up: `from` is who was left.
inline void arrived([[maybe_unused]] Context& self, Context& from, boost::context::detail::fcontext_t left) {
  from.registers = left;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(self.sanitizer, &from.stack, &from.stack_bytes);
#endif
}

// Out of `self`, into `to`. Returns when somebody switches to `self` again: always `to`'s partner, which is given
// back as `to` (a fiber is only entered by a worker and only leaves to one; the worker may be another one then, so
// what is read after the switch must not have been read before). `ends`: self will never be entered again.
template <typename Partner>
inline Partner* switch_over(Context& self, Context& to, void* argument, [[maybe_unused]] bool ends = false) {
  auto* exceptions = reinterpret_cast<Exceptions*>(abi::__cxa_get_globals());
  self.exceptions = std::exchange(*exceptions, to.exceptions);
#if defined(__SANITIZE_THREAD__)
  if (self.sanitizer == nullptr) self.sanitizer = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.sanitizer, 0);
#elif defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(ends ? nullptr : &self.sanitizer, to.stack, to.stack_bytes);
#endif
  boost::context::detail::transfer_t back = boost::context::detail::jump_fcontext(to.registers, argument);
  auto* partner = static_cast<Partner*>(back.data);
  arrived(self, partner->context, back.fctx);
  return partner;
}

}  // namespace hinterland::fiber
