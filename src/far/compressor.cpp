#include "far/compressor.hpp"

#include <lz4.h>
#include <zstd.h>

#include <array>
#include <cerrno>

namespace hinterland::far {
namespace {

class Lz4 final : public Compressor {
 public:
  std::uint32_t compress(const void* page, void* out, std::uint32_t limit) override {
    int length = LZ4_compress_fast_extState(&state_, static_cast<const char*>(page), static_cast<char*>(out),
                                            kPageSize, static_cast<int>(limit), 1);
    return length > 0 ? static_cast<std::uint32_t>(length) : 0;
  }
  bool decompress(const void* bytes, std::uint32_t length, void* page) override {
    return LZ4_decompress_safe(static_cast<const char*>(bytes), static_cast<char*>(page), static_cast<int>(length),
                               kPageSize) == static_cast<int>(kPageSize);
  }

 private:
  LZ4_stream_t state_;
};

class Zstd final : public Compressor {
 public:
  bool prepare() {
    if (!compress_ || !decompress_) return false;
    // Level 1: a page is small, higher levels gain little and cost much. The content size is known: leave it out.
    ZSTD_CCtx_setParameter(compress_.get(), ZSTD_c_compressionLevel, 1);
    ZSTD_CCtx_setParameter(compress_.get(), ZSTD_c_contentSizeFlag, 0);
    // The library allocates its tables at the first call and keeps them: make that call now.
    std::array<char, kPageSize> page{}, out;
    for (std::size_t i = 0; i < page.size(); ++i) page[i] = static_cast<char>(i % 251);
    std::uint32_t length = compress(page.data(), out.data(), out.size());
    return length != 0 && decompress(out.data(), length, page.data());
  }
  std::uint32_t compress(const void* page, void* out, std::uint32_t limit) override {
    std::size_t length = ZSTD_compress2(compress_.get(), out, limit, page, kPageSize);
    return ZSTD_isError(length) ? 0 : static_cast<std::uint32_t>(length);
  }
  bool decompress(const void* bytes, std::uint32_t length, void* page) override {
    return ZSTD_decompressDCtx(decompress_.get(), page, kPageSize, bytes, length) == kPageSize;
  }

 private:
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> compress_{ZSTD_createCCtx(), ZSTD_freeCCtx};
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> decompress_{ZSTD_createDCtx(), ZSTD_freeDCtx};
};

}  // namespace

Result<std::unique_ptr<Compressor>> Compressor::create(Codec codec) {
  if (codec == Codec::lz4) return std::make_unique<Lz4>();
  auto zstd = std::make_unique<Zstd>();
  if (!zstd->prepare()) return std::unexpected(Error::make(ENOMEM, "zmem:zstd: cannot set up compression"));
  return zstd;
}

}  // namespace hinterland::far
