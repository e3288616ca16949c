// The runtime's descriptors have high numbers: the program's own low ones stay where it expects them, and loops that
// close "3 to 255" do not meet ours.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "base/runtime_descriptors.hpp"

namespace hinterland {

// Takes it over. Another number of 900 or above, closed at exec; the same one where there is none.
inline int move_high(int descriptor) {
  const int high = fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstRuntimeDescriptor);
  if (high >= 0) close(descriptor);
  const int kept = high >= 0 ? high : descriptor;
  note_runtime_descriptor(kept);
  return kept;
}

}  // namespace hinterland
