// The parts of catching that are not C++: a child on another stack, and the end of a handler.
#pragma once

#include <ucontext.h>

#include <cstdint>

extern "C" {
// The call that syscall() makes in the way of the table (interpose_syscall.cpp). -1 with errno.
long hinterland_noticed_call(long number, long a, long b, long c, long d, long e, long f);

__attribute__((visibility("hidden"))) extern std::uintptr_t hinterland_clone_range[2];  // libc's code
__attribute__((visibility("hidden"))) extern std::uintptr_t hinterland_clone_gate;

// clone(2) and clone3(2) with a stack for the child, as the caught thread asked for in its registers. The child goes
// on behind the caught instruction, with the parent's registers, and its calls are caught, too. -errno.
long hinterland_clone_elsewhere(const greg_t* registers);
long hinterland_clone3_elsewhere(const greg_t* registers);
// rt_sigreturn(2) of a handler whose frame is at `stack`.
[[noreturn]] void hinterland_return_from_handler(greg_t stack);
}
