// The runtime's descriptors have high numbers: the program's own low ones stay where it expects them, and loops that
// close "3 to 255" do not meet ours.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/runtime_descriptors.hpp"

namespace hinterland {

// A copy, closed at exec, under the first number from `first` up that no part of the runtime holds for its own.
// -errno; -EBADF: the descriptor is not open.
inline int copy_high(int descriptor, int first = kFirstRuntimeDescriptor) {
  for (int from = first;;) {
    const int high = fcntl(descriptor, F_DUPFD_CLOEXEC, from);
    if (high < 0) return -errno;
    if (!is_noted_runtime_descriptor(high)) return high;
    close(high);
    from = high + 1;
  }
}

// Takes it over. Another number, as copy_high() chooses it; the same one where there is none. -EBADF: it is not open
// any more. The program can close any number by a call that nobody sees, and opens what it likes under it: who went
// on with that number would hold it to be the runtime's for ever.
inline int move_high(int descriptor, int first = kFirstRuntimeDescriptor) {
  const int high = copy_high(descriptor, first);
  if (high == -EBADF) return -EBADF;
  if (high >= 0) close(descriptor);
  const int kept = high >= 0 ? high : descriptor;
  note_runtime_descriptor(kept);
  return kept;
}

// What the runtime needs no longer; below zero: nothing.
inline void close_high(int descriptor) {
  forget_runtime_descriptor(descriptor);
  if (descriptor >= 0) close(descriptor);
}

// What `open` opens (it returns a descriptor, or -1 with errno), moved high; opened again when the program closed it
// before it was moved. -errno when `open` fails.
template <typename Open>
int open_high(Open open, int first = kFirstRuntimeDescriptor) {
  for (;;) {
    const int opened = open();
    if (opened < 0) return -errno;
    if (const int high = move_high(opened, first); high != -EBADF) return high;
  }
}

}  // namespace hinterland
