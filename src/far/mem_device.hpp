// mem: far memory in RAM of this process, as shared memory (RssShmem, not RssAnon): the floor that other devices are
// compared with, and the device to test with.
#pragma once

#include <memory>

#include "far/device.hpp"

namespace hinterland::far {

// `size_bytes` is rounded down to whole slabs; 0: not limited (address space for twice the machine's memory).
Result<std::unique_ptr<Device>> open_mem_device(std::uint64_t size_bytes);

}  // namespace hinterland::far
