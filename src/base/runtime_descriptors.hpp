// From which number on a descriptor may be the runtime's own. The preloaded library looks at the program's calls on
// these and higher ones (preload/interpose_descriptors.cpp).
#pragma once

// Read by assembly, hence the name. Only falls: below what is above where the limit of descriptors left no high
// number.
extern "C" int hinterland_first_guarded __attribute__((visibility("hidden")));

namespace hinterland {

// The runtime moves its descriptors to this number and higher ones, out of the way of those that programs choose.
inline constexpr int kFirstRuntimeDescriptor = 900;

// To be called with each descriptor that the runtime keeps, before it is used. Thread-safe; keeps errno.
inline void note_runtime_descriptor(int descriptor) {
  // relaxed: a number alone
  int first = __atomic_load_n(&hinterland_first_guarded, __ATOMIC_RELAXED);
  while (descriptor >= 0 && descriptor < first &&
         !__atomic_compare_exchange_n(&hinterland_first_guarded, &first, descriptor, true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
}

}  // namespace hinterland
