// Starts what the interposers stand on. Two versions: runtime.cpp, the real one, and testing/local_runtime.cpp.
#pragma once

#include "base/error.hpp"

namespace hinterland {

// Whether the environment asks for far memory (`hinterland run` sets it).
bool runtime_wanted();
// False when what start_runtime() failed for may be that this process is not permitted to handle its faults.
bool runtime_permitted();
// Reads the settings, opens the device, starts the pager. Called once, under InsideRuntime. `program`: for the
// figures.
Status start_runtime(const char* program);

}  // namespace hinterland
