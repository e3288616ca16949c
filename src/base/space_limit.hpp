// Which limit it may be that refuses memory, for messages.
#pragma once

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hinterland {

// "ulimit -v", or "ulimit -d" where only that one is set (RLIMIT_DATA counts all private memory that can be written).
// By the system call, because the preloaded library interposes the function.
inline const char* limit_on_space() {
  struct rlimit space, data;
  bool known = syscall(SYS_prlimit64, 0, RLIMIT_AS, nullptr, &space) == 0 &&
               syscall(SYS_prlimit64, 0, RLIMIT_DATA, nullptr, &data) == 0;
  return known && space.rlim_cur == RLIM_INFINITY && data.rlim_cur != RLIM_INFINITY ? "ulimit -d" : "ulimit -v";
}

}  // namespace hinterland
