// fork() for a process with far memory.
#pragma once

#include <sys/types.h>

namespace hinterland::forking {

// In the constructor.
void prepare();
// As fork(): handlers, stdio, and far memory on both sides. -1 with errno set.
pid_t fork_with_handlers();
// As _Fork(): no handlers, stdio untouched.
pid_t fork_plain();

// As _Fork(), by another system call. make() makes it and returns what it said: 0 in the child, -errno. Far memory
// stands still meanwhile: neither make() nor the kernel on its behalf may touch any, and the stack of this call's
// caller may be some.
using MakeChild = long(void* argument);
pid_t fork_by(MakeChild* make, void* argument);

}  // namespace hinterland::forking
