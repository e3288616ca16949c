// What a memory server gives up once it listens. Its clients' pages are in its memory, and what clients send is what
// it reads: should that ever be turned against it, there is little left that it could do.
#pragma once

#include "base/error.hpp"

namespace hinterland {

// For good, for this thread and those it starts from here on: no capabilities, root's neither; no new privileges, no
// core file, no look from other processes of the same user; and of the system calls only those that serving takes:
// sockets it has, memory that is never executable, threads, time. No files, no programs, no new sockets. Other calls
// fail with EPERM.
//
// An error when the kernel does not know filters (code ENOSYS, EINVAL): the server works without, the rest is done.
Status confine();

// Likewise, for the process that computes with what the server's owner installed: memory, sleeping until it is woken,
// its own timers, words to standard error, and its end.
Status confine_operators();

}  // namespace hinterland
