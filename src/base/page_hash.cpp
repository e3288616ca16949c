#include "base/page_hash.hpp"

#include "base/units.hpp"

// Inlined: no shared library to find in a preloaded library, and the hash is on the fetch path.
#define XXH_INLINE_ALL
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include <xxhash.h>
#pragma GCC diagnostic pop

namespace hinterland {

std::uint64_t page_hash_plain(const void* page) { return XXH3_64bits(page, kPageSize); }

// Also whether the system saves the wide registers.
bool has_wide_page_hash() { return __builtin_cpu_supports("avx2") != 0; }

std::uint64_t page_hash(const void* page) {
  return has_wide_page_hash() ? page_hash_wide(page) : page_hash_plain(page);
}

std::uint64_t bytes_hash(const void* bytes, std::size_t count, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, count, seed);
}

}  // namespace hinterland
