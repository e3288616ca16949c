// Which descriptors are the runtime's own: the number from which on they may be, and the numbers that they have.
#pragma once

// From which number on a descriptor may be the runtime's own. The preloaded library looks at the program's calls on
// these and higher ones (preload/interpose_descriptors.cpp). Read by assembly, hence the name. Only falls: below what
// is above where the limit of descriptors left no high number.
extern "C" int hinterland_first_guarded __attribute__((visibility("hidden")));

namespace hinterland {

// The runtime moves its descriptors to this number and higher ones, out of the way of those that programs choose.
inline constexpr int kFirstRuntimeDescriptor = 900;

// To be called with each descriptor that the runtime keeps, before it is used, and with each that it keeps no longer.
// Thread-safe; keep errno. Higher numbers than these are not remembered.
inline constexpr int kRememberedDescriptors = 4096;
void note_runtime_descriptor(int descriptor);
void forget_runtime_descriptor(int descriptor);

// Whether a part of the runtime holds this number for its own. The program may have closed it by a call that nobody
// saw, and until its owner misses it, the number may be given to nothing else of the runtime's: the owner would use
// that as if it were still the first.
bool is_noted_runtime_descriptor(int descriptor);
// The lowest such number from `from` up; -1: there is none.
int next_runtime_descriptor(int from);

}  // namespace hinterland
