// fork() for a process with far memory.
#pragma once

#include <sys/types.h>

namespace hinterland::forking {

// As fork(): handlers, stdio, and far memory on both sides. -1 with errno set.
pid_t fork_with_handlers();
// As _Fork(): no handlers, stdio untouched.
pid_t fork_plain();

}  // namespace hinterland::forking
