// Calls on memory by less common ways: advice to a process, which may be the caller, and System V segments.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace hinterland::mappings {

// As process_madvise(2); -errno on failure.
long advise_process(int process, const iovec* ranges, std::size_t count, int advice, unsigned flags);

// Before shmat(SHM_REMAP): where the segment will lie over far memory, that is given up. 0 or -errno.
int make_way_for_segment(int segment, std::uintptr_t address, int flags);

}  // namespace hinterland::mappings
