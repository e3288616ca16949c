// Inside a traced process: writes each fault into the process's ring.
#pragma once

#include <cstdint>

#include "paging/page/fault_observer.hpp"

namespace hinterland::trace {

// The observer that the environment asks for (kDirectoryVariable), or nullptr. `program` and `far_url` are for the
// trace's head. The ring is made at the first fault, so that processes without one leave nothing behind, and again in
// a forked child. Without it (no space, no directory) nothing is recorded and the program goes on: the recorder says
// that it saw nothing of the process. Not thread-safe: call before other threads run.
FaultObserver* observer_from_environment(std::uint32_t read_ahead_pages, std::uint64_t local_bytes);

// The same on request, while the program runs: 0, or -EBUSY when the process records for somebody already. One thread
// at a time.
int observe_on_request(const char* directory, std::uint64_t instruction_every, FaultObserver** observer);

// --- for allocation_log.cpp, any thread
struct RingFile;
struct AllocationEvent;
// This process's ring; nullptr when it has none yet, or any more.
RingFile* current_ring();
// Nobody will read what this process has to tell, now or later.
bool recording_is_over();
void put(RingFile& ring, const AllocationEvent& event);

}  // namespace hinterland::trace
