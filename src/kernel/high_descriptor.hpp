// The runtime's descriptors have high numbers: the program's own low ones stay where it expects them, and loops that
// close "3 to 255" do not meet ours.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace hinterland {

// Takes it over. Another number of 900 or above, closed at exec; the same one where there is none.
inline int move_high(int descriptor) {
  constexpr int kFrom = 900;
  const int high = fcntl(descriptor, F_DUPFD_CLOEXEC, kFrom);
  if (high < 0) return descriptor;
  close(descriptor);
  return high;
}

}  // namespace hinterland
