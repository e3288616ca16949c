// Writes a page past the caches.
#pragma once

#include <emmintrin.h>

#include <cstddef>

#include "base/units.hpp"

namespace hinterland::far {

// Copies a page to memory that nobody reads soon: its lines are not fetched before they are overwritten, and push
// nothing out of the caches. The target lies on 16 bytes. Ordered like other stores when it returns.
inline void stream_page(void* target, const void* source) {
  auto* to = static_cast<__m128i*>(target);
  const auto* from = static_cast<const __m128i*>(source);
  for (std::size_t i = 0; i < kPageSize / sizeof *to; i += 4) {
    __m128i a = _mm_loadu_si128(from + i), b = _mm_loadu_si128(from + i + 1);
    __m128i c = _mm_loadu_si128(from + i + 2), d = _mm_loadu_si128(from + i + 3);
    _mm_stream_si128(to + i, a);
    _mm_stream_si128(to + i + 1, b);
    _mm_stream_si128(to + i + 2, c);
    _mm_stream_si128(to + i + 3, d);
  }
  _mm_sfence();
}

}  // namespace hinterland::far
