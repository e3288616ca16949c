// Hashes of pages, and of parts of them: what is far is checked with them that it came back as it went.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hinterland {

// XXH3 (64 bits, no seed) of the 4096 bytes at `page`, of any alignment. The same value on every processor; with AVX2
// in half of the time (115 ns for 250 where the page is in the cache). Thread-safe, never blocks.
std::uint64_t page_hash(const void* page);

// XXH3 (64 bits) of any number of bytes, of any alignment, with a seed. 72 bytes take some 10 ns. Thread-safe, never
// blocks.
std::uint64_t bytes_hash(const void* bytes, std::size_t count, std::uint64_t seed);

// The two ways, for their test. The second only where has_wide_page_hash().
std::uint64_t page_hash_plain(const void* page);
std::uint64_t page_hash_wide(const void* page);
bool has_wide_page_hash();

}  // namespace hinterland
