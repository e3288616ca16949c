// Under --catch: system calls that a 64-bit program makes by `int 0x80`, which has the numbers and the registers of
// 32-bit programs.
#pragma once

#include <ucontext.h>

namespace hinterland::catching {

// Makes the call that these registers ask for, on the thread that asked. What names far memory (it may lie below
// 4 GiB) goes the way of the 64-bit call of the same name; all else is passed on to the kernel. Returns -errno on
// failure. While the kernel is at it, the thread's other calls are not caught, those of a signal handler that
// interrupts it among them.
long make_call_of_32_bits(const greg_t* registers);

}  // namespace hinterland::catching
