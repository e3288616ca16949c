// What the kernel counts of this process's memory, from /proc/thread-self/statm.
#pragma once

#include <cstdint>

namespace hinterland {

struct ProcessSizes {
  std::uint64_t space = 0;     // of addresses, bytes (RLIMIT_AS); 0: /proc says nothing
  std::uint64_t resident = 0;  // bytes
  std::uint64_t shared = 0;    // of these, of files and shared memory
  std::uint64_t data = 0;      // private and writable, with the stacks (RLIMIT_DATA counts the former)
};

// Opens the file, for which see ProcFile::open(). Again in a forked child.
void open_process_sizes();
// Any thread.
ProcessSizes process_sizes();

}  // namespace hinterland
