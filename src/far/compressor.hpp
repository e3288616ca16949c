// One page compressed by lz4 or zstd, with all state owned by the object: nothing is allocated after create().
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.hpp"
#include "base/units.hpp"

namespace hinterland::far {

enum class Codec : std::uint8_t { lz4, zstd };

// Belongs to one thread at a time.
class Compressor {
 public:
  virtual ~Compressor() = default;
  static Result<std::unique_ptr<Compressor>> create(Codec codec);
  // Compresses one page into `out`; the length, or 0 when it would take more than `limit` bytes.
  virtual std::uint32_t compress(const void* page, void* out, std::uint32_t limit) = 0;
  // Fills one page; false when the bytes are not a page's. Reads and writes nothing outside, whatever the bytes.
  virtual bool decompress(const void* bytes, std::uint32_t length, void* page) = 0;
};

}  // namespace hinterland::far
