// zmem: far memory as compressed pages in RAM (shared memory: RssShmem, not RssAnon). Needs no set-up at all.
//
// Pages filled with one repeated 32-bit word take no space, pages that do not compress are stored as they are.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "far/compressor.hpp"
#include "far/device.hpp"

namespace hinterland::far {

struct ZmemSettings {
  Codec codec = Codec::lz4;
  // Bounds the pages before compression, rounded down to whole slabs; 0: not limited (address space for eight times
  // the machine's memory).
  std::uint64_t size_bytes = 0;
};

// From what stands behind "zmem:": [lz4|zstd][?size=SIZE].
Result<ZmemSettings> parse_zmem(std::string_view rest);

Result<std::unique_ptr<Device>> open_zmem_device(const ZmemSettings& settings);

}  // namespace hinterland::far
