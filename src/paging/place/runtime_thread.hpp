// Starts the runtime's own threads.
#pragma once

#include "base/error.hpp"

namespace hinterland {

// A detached thread that takes no signals of the program's. `name`: at most 15 characters.
Status start_runtime_thread(const char* name, void* body, void* (*entry)(void*));

}  // namespace hinterland
