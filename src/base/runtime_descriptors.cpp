#include "base/runtime_descriptors.hpp"

int hinterland_first_guarded = hinterland::kFirstRuntimeDescriptor;
