// RLIMIT_FSIZE, which the program may have set for its own files (ulimit -f). A file of ours that would be longer
// must not be begun: the kernel would answer with SIGXFSZ, which ends the program.
#pragma once

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace hinterland {

// By the system call, because the preloaded library interposes the function.
inline bool fits_file_limit(std::uint64_t bytes) {
  struct rlimit limit;
  return syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, nullptr, &limit) != 0 || bytes <= limit.rlim_cur;
}

}  // namespace hinterland
