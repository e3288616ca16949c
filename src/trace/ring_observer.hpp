// Inside a traced process: writes each fault into the process's ring.
#pragma once

#include <cstdint>

#include "paging/fault_observer.hpp"

namespace hinterland::trace {

// The observer that the environment asks for (kDirectoryVariable), or nullptr. `program` and `far_url` are for the
// trace's head. The ring is made at the first fault, so that processes without one leave nothing behind, and again in
// a forked child. Without it (no space, no directory) nothing is recorded and the program goes on: the recorder says
// that it saw nothing of the process. Not thread-safe: call before other threads run.
FaultObserver* observer_from_environment(std::uint32_t read_ahead_pages, std::uint64_t local_bytes);

}  // namespace hinterland::trace
