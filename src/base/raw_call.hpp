// A system call as an instruction: syscall() may be our own, which looks for what concerns far memory. Returns
// -errno on failure, and leaves errno alone.
#pragma once

#include <cerrno>
#include <cstdint>
#include <type_traits>

#ifndef __x86_64__
#error "raw system calls are written for x86-64 only"
#endif

namespace hinterland::raw {

// Where `syscall; ret` stands in libc, and the end of signal handlers there, under --catch: the kernel then sends a
// signal for each system call that is made elsewhere (preload/catching.hpp). 0: the instruction stands here. Set
// once, before there are other threads.
__attribute__((visibility("hidden"))) inline constinit std::uintptr_t g_gate = 0;
__attribute__((visibility("hidden"))) inline constinit std::uintptr_t g_handler_end = 0;

// Naked, because what the compiler keeps below the stack pointer of a function without calls would be overwritten.
// What stands at the gate returns to our caller.
__attribute__((naked, noinline)) inline long call_at_gate(long /*number*/, long, long, long, long, long, long /*f*/,
                                                          std::uintptr_t /*gate*/) {
  __asm__(
      "mov %rdi, %rax\n\t"
      "mov %rsi, %rdi\n\t"
      "mov %rdx, %rsi\n\t"
      "mov %rcx, %rdx\n\t"
      "mov %r8, %r10\n\t"
      "mov %r9, %r8\n\t"
      "mov 8(%rsp), %r9\n\t"
      "jmp *16(%rsp)");
}

inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  if (g_gate != 0) [[unlikely]]
    return call_at_gate(number, a, b, c, d, e, f, g_gate);
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

inline bool failed(std::intptr_t result) { return result < 0 && result >= -4095; }

template <typename Argument>
long word_of(Argument argument) {
  if constexpr (std::is_pointer_v<Argument>)
    return reinterpret_cast<long>(argument);
  else if constexpr (std::is_null_pointer_v<Argument>)
    return 0;
  else
    return static_cast<long>(argument);
}

// The same as libc's syscall() has it: -1 with errno, arguments of any kind.
template <typename... Arguments>
long checked(long number, Arguments... arguments) {
  long result = call(number, word_of(arguments)...);
  if (!failed(result)) return result;
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace hinterland::raw
