// mem: far memory in RAM of this process, as shared memory (RssShmem, not RssAnon): the floor that other devices are
// compared with, and the device to test with.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "far/device.hpp"

namespace hinterland::far {

// From what stands behind "mem:", [?size=SIZE]: bytes, 0 where nothing is said.
Result<std::uint64_t> parse_mem(std::string_view rest);

// `size_bytes` is rounded down to whole slabs; 0: not limited (address space for twice the machine's memory).
Result<std::unique_ptr<Device>> open_mem_device(std::uint64_t size_bytes);

}  // namespace hinterland::far
