// System calls by instructions of the program's own: -errno on failure.
#pragma once

static inline long own_call(long number, long a, long b, long c, long d, long e, long f) {
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
#define OWN1(number, a) own_call(number, (long)(a), 0, 0, 0, 0, 0)
#define OWN2(number, a, b) own_call(number, (long)(a), (long)(b), 0, 0, 0, 0)
#define OWN3(number, a, b, c) own_call(number, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define OWN4(number, a, b, c, d) own_call(number, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define OWN5(number, a, b, c, d, e) own_call(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
