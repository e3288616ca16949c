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

inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
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
