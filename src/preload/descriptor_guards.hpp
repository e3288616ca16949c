// Which calls on descriptors the program may not make, because the descriptor is the runtime's
// (interpose_descriptors.cpp, and syscall()). To the program it is not open: EBADF.
#pragma once

#include <sys/socket.h>

namespace hinterland::descriptor_guards {

// Looks up libc's functions. Once, while there is one thread.
void prepare();

// Whether a call on these two (or the same twice), made by code at `caller`, names one of the runtime's; sets errno
// to EBADF then, and keeps it otherwise. Thread-safe, and may be called in signal handlers.
bool refuses(int first, int second, const void* caller);
// The same of messages on a socket, which may hand descriptors on (SCM_RIGHTS). `messages` may be wrong pointers:
// these are left to the kernel. With `count` 1 the first may be a msghdr alone.
bool refuses_messages(int socket, const mmsghdr* messages, unsigned count, const void* caller);
// Whether a name leads to a file of the runtime's that has no other (a far file, by /proc/self/fd/N); ENOENT. `path`
// may be a wrong pointer, which is left to the kernel. `at`: as openat(2).
bool refuses_path(int at, const char* path, const void* caller);
// The same of a system call by number; sets errno as these.
bool refuses_call(long number, long a, long b, long c, long e);

// pidfd_getfd(2): a copy of a descriptor of the runtime's, whosever table it comes from, is closed again, and the
// call fails with EBADF. -errno.
long copy_of_descriptor(int process, int descriptor, unsigned flags);

}  // namespace hinterland::descriptor_guards
