// RLIMIT_FSIZE, which the program may have set for its own files (ulimit -f). A file of ours that would be longer
// must not be begun: the kernel would answer with SIGXFSZ, which ends the program.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>

#include "base/raw_call.hpp"

namespace hinterland {

// By the system call, because the preloaded library interposes the function.
inline bool fits_file_limit(std::uint64_t bytes) {
  struct rlimit limit;
  return syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, nullptr, &limit) != 0 || bytes <= limit.rlim_cur;
}

// After a write to a file of ours failed with EFBIG, because the program has lowered the limit since: takes away the
// SIGXFSZ that the calling thread was sent for it. The caller has it blocked, as all threads of the runtime have, and
// those of the program that serve their own faults.
inline void take_file_limit_signal() {
  std::uint64_t set = std::uint64_t{1} << (SIGXFSZ - 1);
  timespec at_once{0, 0};
  raw::call(SYS_rt_sigtimedwait, raw::word_of(&set), 0, raw::word_of(&at_once), sizeof set);
}

}  // namespace hinterland
