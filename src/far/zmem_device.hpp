// zmem: far memory as compressed pages in RAM (shared memory: RssShmem, not RssAnon). Needs no set-up at all.
//
// Pages filled with one repeated 32-bit word take no space, pages that do not compress are stored as they are.
#pragma once

#include <memory>

#include "far/device.hpp"
#include "far/url.hpp"

namespace hinterland::far {

// `size_bytes` bounds the pages before compression, rounded down to whole slabs; 0: not limited (address space for
// eight times the machine's memory).
Result<std::unique_ptr<Device>> open_zmem_device(Codec codec, std::uint64_t size_bytes);

}  // namespace hinterland::far
