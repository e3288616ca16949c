// page_hash() for processors with AVX2, and compiled for them. Nothing may be included here that has inline functions
// with names of their own outside: the linker might take this file's copy for other processors, too. (Those of
// xxhash.h are static.)
#include "base/page_hash.hpp"

#define XXH_INLINE_ALL
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include <xxhash.h>
#pragma GCC diagnostic pop

namespace hinterland {

std::uint64_t page_hash_wide(const void* page) { return XXH3_64bits(page, 4096); }

}  // namespace hinterland
