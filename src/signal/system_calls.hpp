// System calls that a program makes by syscall(2): what their arguments lead to is held, as for libc's functions.
#pragma once

#include <cstddef>

#include "signal/held.hpp"

namespace hinterland {

// io_submit(2) of `count` control blocks: -errno, or how many were taken. What a block names is held until the kernel
// has taken it: by then it has copied the bytes, or pinned their pages. Where pins are not seen, reads are held until
// completed() or context_ended() is told of them: after io_getevents(2) and its kin, and io_destroy(2).
long submit_held(long context, long count, const void* blocks);
void completed(long context, const void* events, long count);
void context_ended(long context);

// io_uring_register(2): -errno, or what it returns. Where pins are not seen, buffers are held until their ring has
// none, or begins anew under the same number.
long register_held(const long (&arguments)[6]);
void ring_begins(long descriptor);

// io_uring_setup(2) and io_uring_enter(2): what entries name is held until their completions are there. -errno.
long set_up_ring(const long (&arguments)[6]);
long enter_ring(const long (&arguments)[6]);

// execve(2) and execveat(2): the words are brought in, not held, because nobody comes back to let go. -errno.
long execute_held(long number, const long (&arguments)[6]);

}  // namespace hinterland
