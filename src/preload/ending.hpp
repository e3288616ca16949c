// The end of the process, or of the program in it.
#pragma once

namespace hinterland::ending {

// In the constructor, before the program has threads.
void prepare();
// Whether the runtime here is this process's own. Not in a vfork child, which has its parent's memory, nor in a copy
// of the process that the runtime does not know of: they must not end their parent's affairs. Async-signal-safe.
bool is_own_process();
// Tells the far device and closes the figures. Far memory still works. Async-signal-safe.
void finish();
void finish_if_own();

}  // namespace hinterland::ending
