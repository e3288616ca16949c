// Programs that confine themselves. The runtime's threads are not theirs to confine.
#pragma once

namespace hinterland::seccomp {

// Whether the calling thread may do nothing but read, write and exit from now on.
bool is_strict();
// Whether the program has set a filter of its own: it may end the process for any call that the program itself does
// not make. Any thread.
bool is_filtered();
// seccomp(2), which libc has no function for. As libc's functions: -1 with errno.
long call(long operation, long flags, long arguments);

}  // namespace hinterland::seccomp
