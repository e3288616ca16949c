// Protects the runtime's descriptors from programs that close all they can.
#pragma once

#include "base/runtime_descriptors.hpp"

namespace hinterland::descriptors {

// Whether a number is one of the runtime's. For calls about one descriptor; may be called in signal handlers.
inline bool is_protected(int descriptor) { return is_noted_runtime_descriptor(descriptor); }

// Calls part(first, last) for the parts of [first, last] without the runtime's descriptors, until one returns other
// than 0, which it returns.
template <typename Part>
int for_unprotected(unsigned first, unsigned last, Part part) {
  constexpr unsigned kAnyInt = 0x7fff'ffff;
  while (first <= kAnyInt) {
    const int next = next_runtime_descriptor(static_cast<int>(first));
    const auto ours = static_cast<unsigned>(next);
    if (next < 0 || ours > last) break;
    if (ours > first)
      if (int result = part(first, ours - 1); result != 0) return result;
    if (ours == last) return 0;
    first = ours + 1;
  }
  return part(first, last);
}

}  // namespace hinterland::descriptors
