// System calls that a program makes by syscall(2): what their arguments lead to is held, as for libc's functions.
#pragma once

#include <cstddef>

#include "signal/held.hpp"

namespace hinterland {

// io_submit(2) of `count` control blocks: -errno, or how many were taken. What a block names is held until the kernel
// has taken it: by then it has copied the bytes, or pinned their pages.
long submit_held(long context, long count, const void* blocks);

// What io_uring_register(2) reads: of buffers every byte, because it pins them.
void hold_registered(Held& held, long operation, const void* what, std::size_t count);

// io_uring_setup(2) and io_uring_enter(2): what entries name is held until their completions are there. -errno.
long set_up_ring(const long (&arguments)[6]);
long enter_ring(const long (&arguments)[6]);

// execve(2) and execveat(2): the words are brought in, not held, because nobody comes back to let go. -errno.
long execute_held(long number, const long (&arguments)[6]);

}  // namespace hinterland
